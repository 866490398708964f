package dev.outbox4j.examples.docs;

import static dev.outbox4j.test.OutboxAssertions.assertThatOutbox;
import static org.assertj.core.api.Assertions.assertThat;

import com.zaxxer.hikari.HikariDataSource;
import dev.outbox4j.IfLive;
import dev.outbox4j.OutboxMessage;
import dev.outbox4j.OutboxSubscriber;
import dev.outbox4j.Payload;
import dev.outbox4j.codec.jackson2.Jackson2Codec;
import dev.outbox4j.dlq.DeadLetterQueue;
import dev.outbox4j.postgres.OutboxPublisher;
import dev.outbox4j.postgres.OutboxTable;
import dev.outbox4j.postgres.PostgresOutbox;
import dev.outbox4j.postgres.Published;
import dev.outbox4j.postgres.ReactiveOutboxPublisher;
import dev.outbox4j.postgres.jooq.JooqOutboxPublisher;
import dev.outbox4j.postgres.testing.PostgresExtension;
import dev.outbox4j.postgres.testing.TestDatabase;
import io.r2dbc.spi.ConnectionFactory;
import java.io.IOException;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.SQLException;
import java.time.Duration;
import java.util.Map;
import java.util.Properties;
import org.jooq.DSLContext;
import org.jooq.SQLDialect;
import org.jooq.impl.DSL;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;

@ExtendWith(PostgresExtension.class)
class PublishingSamplesIT {
  private final TestDatabase database;
  private final OutboxTable table = OutboxTable.named("outbox");
  private final OutboxPublisher publisher =
      PostgresOutbox.publisher(table).codec(Jackson2Codec.standard()).build();
  private final Order order = new Order("o-1", "acme");

  PublishingSamplesIT(TestDatabase database) {
    this.database = database;
  }

  record Order(String id, String customer) {}

  @BeforeEach
  void empty() {
    database.update("truncate outbox");
    database.update("create table if not exists orders (id text primary key)");
    database.update("truncate orders");
  }

  @Test
  void buildsAPublisherThatKnowsItsTableAndCodec() throws SQLException {
    // tag::publisher
    OutboxPublisher publisher =
        PostgresOutbox.publisher(OutboxTable.named("outbox"))
            .codec(Jackson2Codec.standard())
            .build();
    // end::publisher

    try (Connection tx = database.plain().getConnection()) {
      tx.setAutoCommit(false);
      publisher.publish(tx, OutboxMessage.to("orders").body(order).build());
      tx.rollback();
    }
    assertThat(database.count("outbox")).isZero();
  }

  @Test
  void publishesInTheTransactionOfAJdbcConnection() throws SQLException {
    var dataSource = database.plain();
    // tag::jdbc
    try (Connection tx = dataSource.getConnection()) {
      tx.setAutoCommit(false);
      insertOrder(tx, order);
      publisher.publish(tx, OutboxMessage.to("orders").type("order.placed").body(order).build());
      tx.commit();
    }
    // end::jdbc

    assertThat(database.count("orders")).isEqualTo(1);
    assertThat(database.list(String.class, "select type from outbox"))
        .containsExactly("order.placed");
  }

  @Test
  void publishesInATransactionOfJooq() {
    DSLContext dsl = DSL.using(database.plain(), SQLDialect.POSTGRES);
    // tag::jooq
    JooqOutboxPublisher jooqPublisher = JooqOutboxPublisher.of(publisher);

    dsl.transaction(
        tx -> {
          tx.dsl().execute("insert into orders (id) values (?)", order.id());
          jooqPublisher.publish(
              tx, OutboxMessage.to("orders").type("order.placed").body(order).build());
        });
    // end::jooq

    assertThat(database.count("orders")).isEqualTo(1);
    assertThat(database.count("outbox")).isEqualTo(1);
  }

  @Test
  void publishesInATransactionOfR2dbc() {
    ConnectionFactory connectionFactory = SampleDatabase.r2dbc(database);
    // tag::r2dbc
    ReactiveOutboxPublisher reactive =
        PostgresOutbox.publisher(table).codec(Jackson2Codec.standard()).buildReactive();
    OutboxMessage message = OutboxMessage.to("orders").type("order.placed").body(order).build();

    Mono<Published> placed =
        Mono.usingWhen(
            connectionFactory.create(),
            tx ->
                Mono.from(tx.beginTransaction())
                    .thenMany(tx.createStatement("insert into orders values ('o-1')").execute())
                    .flatMap(result -> Flux.from(result.getRowsUpdated()))
                    .then(Mono.from(reactive.publish(tx, message)))
                    .delayUntil(published -> tx.commitTransaction()),
            tx -> tx.close());
    // end::r2dbc

    assertThat(database.count("outbox")).isZero();
    assertThat(placed.block().rowId()).isPresent();
    assertThat(database.count("orders")).isEqualTo(1);
    assertThat(database.count("outbox")).isEqualTo(1);
  }

  @Test
  void carriesAllThatAMessageCanSay() throws SQLException {
    // tag::message
    OutboxMessage message =
        OutboxMessage.to("orders")
            .type("order.placed")
            .body(order)
            .header("tenant", "acme")
            .correlationId("request-42")
            .orderingKey(order.customer())
            .deliverIn(Duration.ofMinutes(5))
            .build();
    // end::message

    commit(message);
    assertThat(
            database.one(
                Boolean.class,
                """
                select queue = 'orders' and type = 'order.placed' and ordering_key = 'acme'
                  and headers = '{"tenant": "acme", "correlation-id": "request-42",
                                  "content-type": "application/json"}'
                  and available_at between now() + interval '4 min' and now() + interval '5 min'
                from outbox
                """))
        .isTrue();
  }

  @Test
  void carriesCorrelationAndTraceFromMessageToMessage() throws SQLException {
    HikariDataSource dataSource = database.pool(6);
    PostgresOutbox outbox = PostgresOutbox.on(dataSource, table);
    // tag::carried
    OutboxSubscriber subscriber =
        OutboxSubscriber.builder("orders")
            .store(outbox.store())
            .deadLetters(DeadLetterQueue.in("outbox_dlq"))
            .on(
                "order.paid",
                String.class,
                outbox.transactional(
                    (id, delivery, connection) -> {
                      // has the correlation id and the trace of the message that is handled
                      OutboxMessage invoice =
                          OutboxMessage.to("invoices").type("invoice.due").body(id).build();
                      publisher.publish(connection, invoice);
                    }))
            .build();
    // end::carried

    String trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    commit(
        OutboxMessage.to("orders")
            .type("order.paid")
            .body("o-1")
            .header("tenant", "acme")
            .correlationId("request-42")
            .traceparent(trace)
            .build());
    try (subscriber) {
      subscriber.start();
      assertThatOutbox(dataSource, table).awaitDrained("orders", Duration.ofSeconds(30));
    }
    assertThat(
            database.one(
                Boolean.class,
                """
                select headers = jsonb_build_object('correlation-id', 'request-42',
                  'traceparent', ?::text, 'content-type', 'text/plain; charset=utf-8')
                from outbox where queue = 'invoices'
                """,
                trace))
        .isTrue();
  }

  @Test
  void encodesByACodecOfOnesOwn() throws Exception {
    Properties body = new Properties();
    body.setProperty("id", "o-1");
    OutboxPublisher own = PostgresOutbox.publisher(table).codec(new PropertiesCodec()).build();
    try (Connection tx = database.plain().getConnection()) {
      tx.setAutoCommit(false);
      own.publish(tx, OutboxMessage.to("orders").body(body).build());
      tx.commit();
    }

    byte[] stored = database.one(byte[].class, "select payload from outbox");
    assertThat(new PropertiesCodec().decode(Payload.of(stored), Map.of(), Properties.class))
        .isEqualTo(body);
    assertThat(database.one(String.class, "select headers ->> 'content-type' from outbox"))
        .isEqualTo("text/x-java-properties");
  }

  @Test
  void keepsOneLiveRowPerTimerAndCancelsIt() throws SQLException {
    try (Connection tx = database.plain().getConnection()) {
      tx.setAutoCommit(false);
      // tag::timer
      OutboxMessage reminder =
          OutboxMessage.to("reminders")
              .type("payment.due")
              .timerId("payment-" + order.id())
              .deliverIn(Duration.ofDays(14))
              .build();

      Published first = publisher.publish(tx, reminder);
      Published second = publisher.publish(tx, reminder); // changes nothing
      boolean cancelled = publisher.cancelTimer(tx, "reminders", "payment-" + order.id());
      // end::timer
      tx.commit();

      assertThat(first.deduplicated()).isFalse();
      assertThat(second.deduplicated()).isTrue();
      assertThat(cancelled).isTrue();
    }
    assertThat(database.count("outbox")).isZero();
  }

  @Test
  void replacesATimer() throws SQLException {
    try (Connection tx = database.plain().getConnection()) {
      tx.setAutoCommit(false);
      // tag::replace
      OutboxMessage index =
          OutboxMessage.to("search")
              .type("order.changed")
              .timerId("order-" + order.id(), IfLive.REPLACE)
              .body(order.id())
              .build();

      updateOrder(tx, order);
      publisher.publish(tx, index);
      // end::replace
      Published again = publisher.publish(tx, index);
      tx.commit();
      assertThat(again.deduplicated()).isFalse();
    }
    assertThat(database.count("outbox")).isEqualTo(1);
  }

  @Test
  void publishesWhatExpires() throws SQLException {
    // tag::expiry
    OutboxMessage code =
        OutboxMessage.to("text-messages")
            .type("login.code")
            .body("493 021")
            .expiresIn(Duration.ofMinutes(5))
            .build();
    // end::expiry
    commit(code);

    assertThat(
            database.one(
                Boolean.class,
                """
                select expires_at - available_at between interval '5 min' and interval '5 min 1 s'
                from outbox
                """))
        .isTrue();
  }

  @Test
  void publishesFromSql() throws IOException {
    assertThat(database.one(Long.class, DocumentedSql.of("publishing.md", "publish"))).isPositive();

    assertThat(
            database.one(
                Boolean.class,
                """
                select payload = convert_to('{"id": 7}', 'UTF8') and type = 'order.placed'
                  and available_at > now() + interval '4 min'
                from outbox where queue = 'orders'
                """))
        .isTrue();
  }

  private void commit(OutboxMessage message) throws SQLException {
    try (Connection tx = database.plain().getConnection()) {
      tx.setAutoCommit(false);
      publisher.publish(tx, message);
      tx.commit();
    }
  }

  private static void updateOrder(Connection tx, Order order) throws SQLException {
    try (PreparedStatement update = tx.prepareStatement("update orders set id = id where id = ?")) {
      update.setString(1, order.id());
      update.executeUpdate();
    }
  }

  private static void insertOrder(Connection tx, Order order) throws SQLException {
    try (PreparedStatement insert = tx.prepareStatement("insert into orders values (?)")) {
      insert.setString(1, order.id());
      insert.executeUpdate();
    }
  }
}
