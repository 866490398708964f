package dev.outbox4j.examples.docs;

import static dev.outbox4j.test.OutboxAssertions.assertThatOutbox;
import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import dev.outbox4j.Delivery;
import dev.outbox4j.OutboxMessage;
import dev.outbox4j.OutboxSubscriber;
import dev.outbox4j.dlq.DeadLetterQueue;
import dev.outbox4j.migrations.OutboxMigrations;
import dev.outbox4j.postgres.OutboxPublisher;
import dev.outbox4j.postgres.OutboxTable;
import dev.outbox4j.postgres.PostgresOutbox;
import dev.outbox4j.postgres.notify.pgjdbc.PgjdbcListen;
import dev.outbox4j.postgres.testing.PostgresExtension;
import dev.outbox4j.postgres.testing.TestDatabase;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.SQLException;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import javax.sql.DataSource;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;

@ExtendWith(PostgresExtension.class)
class ReadmeSamplesIT {
  private final List<String> shipped = new CopyOnWriteArrayList<>();

  private static void insert(Connection tx, String order) throws SQLException {
    try (PreparedStatement insert = tx.prepareStatement("insert into orders values (?)")) {
      insert.setString(1, order);
      insert.executeUpdate();
    }
  }

  private void ship(String order, Delivery delivery) {
    shipped.add(order);
  }

  @Test
  void goesFromTheDomainWriteToTheHandler(TestDatabase database) throws Exception {
    database.update("create table orders (id text primary key)");
    DataSource dataSource = database.pool(5);
    DataSource unpooled = database.plain();

    // tag::embed
    OutboxTable table = OutboxTable.named("outbox");
    OutboxMigrations.standard().migrate(dataSource); // creates the tables

    OutboxPublisher publisher = PostgresOutbox.publisher(table).build();
    OutboxSubscriber subscriber =
        OutboxSubscriber.builder("orders")
            .store(PostgresOutbox.on(dataSource, table).store())
            .listen(PgjdbcListen.on(unpooled)) // wakes it at once; without, it polls
            .deadLetters(DeadLetterQueue.in("outbox_dlq"))
            .on("order.placed", String.class, this::ship)
            .build();
    subscriber.start();

    try (Connection tx = dataSource.getConnection()) {
      tx.setAutoCommit(false);
      insert(tx, "o-1"); // your data
      publisher.publish(tx, OutboxMessage.to("orders").type("order.placed").body("o-1").build());
      tx.commit(); // both, or neither
    }
    // end::embed

    try (subscriber) {
      assertThatOutbox(dataSource, table).awaitDrained("orders", Duration.ofSeconds(30));
      assertThat(shipped).containsExactly("o-1");
      assertThat(database.count("outbox")).isZero();
      await().untilAsserted(() -> assertThat(subscriber.health().healthy()).isTrue());
      assertThat(database.count("orders")).isEqualTo(1);
    }
  }
}
