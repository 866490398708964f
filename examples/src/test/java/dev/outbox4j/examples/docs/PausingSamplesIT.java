package dev.outbox4j.examples.docs;

import static dev.outbox4j.test.OutboxAssertions.assertThatOutbox;
import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import com.zaxxer.hikari.HikariDataSource;
import dev.outbox4j.Delivery;
import dev.outbox4j.OutboxMessage;
import dev.outbox4j.OutboxSubscriber;
import dev.outbox4j.dlq.DeadLetterQueue;
import dev.outbox4j.migrations.PauseMigrations;
import dev.outbox4j.postgres.OutboxTable;
import dev.outbox4j.postgres.PostgresOutbox;
import dev.outbox4j.postgres.QueuePause;
import dev.outbox4j.postgres.QueuePauses;
import dev.outbox4j.postgres.testing.PostgresExtension;
import dev.outbox4j.postgres.testing.TestDatabase;
import dev.outbox4j.spi.OutboxStore;
import java.io.IOException;
import java.sql.Connection;
import java.sql.SQLException;
import java.time.Duration;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.CopyOnWriteArrayList;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;

@ExtendWith(PostgresExtension.class)
class PausingSamplesIT {
  private final TestDatabase database;
  private final HikariDataSource dataSource;
  private final OutboxTable table = OutboxTable.named("outbox");
  private final List<String> shipped = new CopyOnWriteArrayList<>();

  PausingSamplesIT(TestDatabase database) {
    this.database = database;
    this.dataSource = database.pool(4);
  }

  private void ship(String order, Delivery delivery) {
    shipped.add(order);
  }

  private void publish(String order) throws SQLException {
    try (Connection tx = database.plain().getConnection()) {
      tx.setAutoCommit(false);
      PostgresOutbox.publisher(table)
          .build()
          .publish(tx, OutboxMessage.to("orders").type("order.placed").body(order).build());
      tx.commit();
    }
  }

  private static void awaitPaused(OutboxSubscriber subscriber, Set<String> queues) {
    await().until(() -> subscriber.health().pausedQueues().equals(Optional.of(queues)));
  }

  @Test
  void aPausedQueueWaits() throws SQLException, IOException {
    // tag::migrate
    PauseMigrations.of("public", "outbox").migrate(dataSource);
    // end::migrate
    OutboxStore store = PostgresOutbox.on(dataSource, table).store();
    // tag::subscriber
    OutboxSubscriber subscriber =
        OutboxSubscriber.builder("orders")
            .pausable()
            .store(store)
            .deadLetters(DeadLetterQueue.in("outbox_dlq"))
            .on("order.placed", String.class, this::ship)
            .build();
    // end::subscriber
    try (subscriber) {
      subscriber.start();
      // tag::pause
      QueuePauses pauses = PostgresOutbox.on(dataSource, table).pauses();
      boolean paused = pauses.pause("orders", "ada", "the warehouse is down until noon");
      // end::pause
      assertThat(paused).isTrue();
      awaitPaused(subscriber, Set.of("orders"));
      publish("first");
      // tag::resume
      boolean resumed = pauses.resume("orders", "ada");
      // end::resume
      assertThat(resumed).isTrue();
      assertThatOutbox(dataSource, table).awaitDrained("orders", Duration.ofSeconds(30));

      database.update(DocumentedSql.of("pausing.md", "pause-queue"));
      awaitPaused(subscriber, Set.of("orders"));
      publish("second");
      assertThat(shipped).containsExactly("first");
      assertThat(pauses.open())
          .singleElement()
          .extracting(QueuePause::reason)
          .isEqualTo(Optional.of("the warehouse is down until noon"));
      database.update(DocumentedSql.of("pausing.md", "resume-queue"));
      awaitPaused(subscriber, Set.of());
      assertThatOutbox(dataSource, table).awaitDrained("orders", Duration.ofSeconds(30));
    }
    assertThat(shipped).containsExactly("first", "second");
  }

  @Test
  void itsGrantsAreForTwoRoles() {
    // tag::grants
    String sql =
        PauseMigrations.of("public", "outbox").grantsSql("shop_subscriber", "shop_operator");
    // end::grants
    assertThat(sql)
        .contains("grant select on \"public\".\"outbox_pauses\" to \"shop_subscriber\"")
        .contains(
            "update (resumed_at, resumed_by) on \"public\".\"outbox_pauses\" to \"shop_operator\"");
  }
}
