package dev.outbox4j.examples.docs;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import com.zaxxer.hikari.HikariDataSource;
import dev.outbox4j.Delivery;
import dev.outbox4j.OutboxMessage;
import dev.outbox4j.OutboxSubscriber;
import dev.outbox4j.SubscriberHealth;
import dev.outbox4j.SubscriberState;
import dev.outbox4j.codec.jackson.JacksonCodec;
import dev.outbox4j.dlq.DeadLetterQueue;
import dev.outbox4j.metrics.MicrometerMetrics;
import dev.outbox4j.migrations.OutboxMigrations;
import dev.outbox4j.postgres.OutboxPublisher;
import dev.outbox4j.postgres.OutboxTable;
import dev.outbox4j.postgres.PostgresOutbox;
import dev.outbox4j.postgres.SchemaReport;
import dev.outbox4j.postgres.notify.r2dbc.R2dbcListen;
import dev.outbox4j.postgres.testing.PostgresExtension;
import dev.outbox4j.postgres.testing.TestDatabase;
import io.micrometer.core.instrument.MeterRegistry;
import io.micrometer.core.instrument.simple.SimpleMeterRegistry;
import io.r2dbc.spi.ConnectionFactory;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.SQLException;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;

@ExtendWith(PostgresExtension.class)
class ReadmeSamplesIT {
  private final List<String> shipped = new CopyOnWriteArrayList<>();

  record Order(String id, String customer) {}

  private static void insert(Connection tx, Order order) throws SQLException {
    try (PreparedStatement insert = tx.prepareStatement("insert into orders values (?, ?)")) {
      insert.setString(1, order.id());
      insert.setString(2, order.customer());
      insert.executeUpdate();
    }
  }

  private void ship(Order order, Delivery delivery) {
    shipped.add(order.id());
  }

  @Test
  void goesFromTheDomainWriteToTheHandler(TestDatabase database) throws Exception {
    database.update("create table orders (id text primary key, customer text not null)");
    String url = database.plain().getUrl();
    String user = database.server().user();
    String password = database.server().password();
    ConnectionFactory unpooled = SampleDatabase.r2dbc(database);
    MeterRegistry meters = new SimpleMeterRegistry();
    Order order = new Order("o-1", "acme");

    // tag::embed
    HikariDataSource pool = new HikariDataSource();
    pool.setJdbcUrl(url);
    pool.setUsername(user);
    pool.setPassword(password);
    OutboxTable table = OutboxTable.named("outbox");
    OutboxMigrations.standard().migrate(pool);

    // the producer: your row and the message, both or neither
    OutboxPublisher publisher =
        PostgresOutbox.publisher(table).codec(JacksonCodec.standard()).build();
    try (Connection tx = pool.getConnection()) {
      tx.setAutoCommit(false);
      insert(tx, order);
      publisher.publish(tx, OutboxMessage.to("orders").type("order.placed").body(order).build());
      tx.commit();
    }

    // the consumer, in this or any other process
    OutboxSubscriber subscriber =
        OutboxSubscriber.builder("orders")
            .store(PostgresOutbox.on(pool, table).store())
            .listen(R2dbcListen.on(unpooled)) // wakes it at once; without, it polls
            .codec(JacksonCodec.standard())
            .on("order.placed", Order.class, this::ship)
            .maxDeliveries(20)
            .deadLetters(DeadLetterQueue.in("outbox_dlq"))
            .observe(MicrometerMetrics.on(meters))
            .stopOnShutdown() // finishes what it has begun
            .build();
    subscriber.start();

    // for a health endpoint
    SubscriberHealth health = subscriber.health();
    SchemaReport schema = PostgresOutbox.on(pool, table).validator().validateSchema();
    // end::embed

    try (pool;
        subscriber) {
      assertThat(schema.faults()).isEmpty();
      assertThat(health.state()).isEqualTo(SubscriberState.RUNNING);
      await().untilAsserted(() -> assertThat(shipped).containsExactly("o-1"));
      await().untilAsserted(() -> assertThat(database.count("outbox")).isZero());
      await().untilAsserted(() -> assertThat(subscriber.health().healthy()).isTrue());
      assertThat(meters.find("outbox.acked").counter()).isNotNull();
      assertThat(database.count("orders")).isEqualTo(1);
    }
  }
}
