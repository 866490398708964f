package dev.outbox4j.examples.docs;

import static dev.outbox4j.test.OutboxAssertions.assertThatOutbox;
import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import com.zaxxer.hikari.HikariConfig;
import com.zaxxer.hikari.HikariDataSource;
import dev.outbox4j.Delivery;
import dev.outbox4j.OutboxMessage;
import dev.outbox4j.OutboxSubscriber;
import dev.outbox4j.SubscriberHealth;
import dev.outbox4j.SubscriberState;
import dev.outbox4j.codec.jackson3.Jackson3Codec;
import dev.outbox4j.dlq.DeadLetterQueue;
import dev.outbox4j.metrics.MicrometerMetrics;
import dev.outbox4j.migrations.OutboxMigrations;
import dev.outbox4j.postgres.OutboxPublisher;
import dev.outbox4j.postgres.OutboxTable;
import dev.outbox4j.postgres.PostgresOutbox;
import dev.outbox4j.postgres.SchemaReport;
import dev.outbox4j.postgres.notify.pgjdbc.PgjdbcListen;
import dev.outbox4j.postgres.testing.PostgresExtension;
import dev.outbox4j.postgres.testing.TestDatabase;
import io.micrometer.core.instrument.simple.SimpleMeterRegistry;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.SQLException;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.postgresql.ds.PGSimpleDataSource;

@ExtendWith(PostgresExtension.class)
class GettingStartedSamplesIT {
  private final List<String> shipped = new CopyOnWriteArrayList<>();

  record Order(String id) {}

  @Test
  void goesFromAnEmptyDatabaseToAHandledMessage(TestDatabase database) throws SQLException {
    database.update("drop schema public cascade");
    database.update("create schema public");
    String url = database.plain().getURL();
    String user = database.server().user();
    String password = database.server().password();
    SimpleMeterRegistry meterRegistry = new SimpleMeterRegistry();
    Order order = new Order("o-1");

    // tag::connect
    PGSimpleDataSource unpooled = new PGSimpleDataSource(); // for LISTEN
    unpooled.setURL(url); // such as jdbc:postgresql://db.example.org:5432/shop
    unpooled.setUser(user);
    unpooled.setPassword(password);
    unpooled.setConnectTimeout(5); // seconds
    unpooled.setTcpKeepAlive(true);

    HikariConfig config = new HikariConfig();
    config.setJdbcUrl(url);
    config.setUsername(user);
    config.setPassword(password);
    config.setMaximumPoolSize(10); // two for each subscriber, the rest for your own transactions
    config.setConnectionTimeout(5_000); // milliseconds
    HikariDataSource dataSource = new HikariDataSource(config);
    // end::connect

    try (dataSource) {
      goOn(database, dataSource, unpooled, meterRegistry, order);
    }
  }

  private void goOn(
      TestDatabase database,
      HikariDataSource dataSource,
      PGSimpleDataSource unpooled,
      SimpleMeterRegistry meterRegistry,
      Order order)
      throws SQLException {
    // tag::migrate
    OutboxMigrations.standard().migrate(dataSource);
    // end::migrate

    assertThat(database.count("outbox") + database.count("outbox_dlq")).isZero();
    assertThat(database.count("outbox_sleepers")).isZero();
    database.update("create table orders (id text primary key)");

    // tag::publish
    OutboxTable table = OutboxTable.named("outbox");
    OutboxPublisher publisher =
        PostgresOutbox.publisher(table).codec(Jackson3Codec.standard()).build();

    try (Connection tx = dataSource.getConnection()) {
      tx.setAutoCommit(false);
      insertOrder(tx, order);
      publisher.publish(tx, OutboxMessage.to("orders").type("order.placed").body(order).build());
      tx.commit();
    }
    // end::publish

    assertThatOutbox(dataSource, table)
        .hasPublishedExactly("orders", 1)
        .hasPublished("orders", "order.placed", "{\"id\":\"o-1\"}");

    // tag::subscribe
    OutboxSubscriber subscriber =
        OutboxSubscriber.builder("orders")
            .store(PostgresOutbox.on(dataSource, table).store())
            .listen(PgjdbcListen.on(unpooled)) // a connection of its own, not from the pool
            .codec(Jackson3Codec.standard())
            .on("order.placed", Order.class, this::ship)
            .deadLetters(DeadLetterQueue.in("outbox_dlq"))
            .events(MicrometerMetrics.on(meterRegistry))
            .build();
    subscriber.start();
    // end::subscribe

    try {
      assertThatOutbox(dataSource, table).awaitDrained("orders", Duration.ofSeconds(30));
      assertThat(shipped).containsExactly("o-1");
      assertThat(database.count("outbox")).isZero();
      await().until(() -> subscriber.health().healthy());

      // tag::watch
      SubscriberHealth health = subscriber.health();
      SchemaReport schema =
          PostgresOutbox.on(dataSource, table)
              .validator()
              .deadLetters("outbox_dlq")
              .validateSchema();
      boolean fine = health.healthy() && schema.valid();
      // end::watch

      assertThat(fine).isTrue();
      assertThat(database.count("outbox_dlq")).isZero();

      // tag::stop
      subscriber.stop(); // claims no more, and gives running handlers 15 s to end
      dataSource.close(); // only then
      // end::stop

      assertThat(subscriber.health().state()).isEqualTo(SubscriberState.STOPPED);
    } finally {
      subscriber.stop();
    }
  }

  private static void insertOrder(Connection tx, Order order) throws SQLException {
    try (PreparedStatement insert = tx.prepareStatement("insert into orders values (?)")) {
      insert.setString(1, order.id());
      insert.executeUpdate();
    }
  }

  private void ship(Order order, Delivery delivery) {
    shipped.add(order.id());
  }
}
