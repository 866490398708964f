package dev.outbox4j.test;

import static org.assertj.core.api.Assertions.assertThat;

import dev.outbox4j.Delivery;
import dev.outbox4j.FailureReason;
import dev.outbox4j.OutboxMessage;
import dev.outbox4j.OutboxSubscriber;
import dev.outbox4j.Outcome;
import dev.outbox4j.Payload;
import dev.outbox4j.RetryPolicy;
import dev.outbox4j.codec.jackson2.Jackson2Codec;
import dev.outbox4j.dlq.DeadLetterQueue;
import dev.outbox4j.postgres.OutboxPublisher;
import dev.outbox4j.postgres.OutboxTable;
import dev.outbox4j.postgres.PostgresOutbox;
import dev.outbox4j.postgres.testing.PostgresServer;
import java.sql.Connection;
import java.sql.SQLException;
import java.sql.Statement;
import java.time.Duration;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import javax.sql.DataSource;
import org.assertj.core.api.Assertions;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;

/** The extension and the assertions on a server that is not the extension's, with other names. */
class OutboxPostgresOwnServerIT {
  private static final String SCHEMA = "outbox_test_kit";

  @RegisterExtension
  static final OutboxPostgres postgres =
      OutboxPostgres.on(() -> PostgresServer.shared().dataSource("postgres"))
          .outbox(SCHEMA, "Events");

  private final DataSource dataSource = postgres.dataSource();
  private final OutboxTable table = postgres.table();
  private final OutboxPublisher publisher =
      PostgresOutbox.publisher(table).codec(Jackson2Codec.standard()).build();

  record Order(String id) {}

  @AfterAll
  static void drop() throws SQLException {
    try (Connection connection = PostgresServer.shared().dataSource("postgres").getConnection();
        Statement statement = connection.createStatement()) {
      statement.execute("drop schema " + SCHEMA + " cascade");
    }
  }

  private void publish(OutboxMessage... messages) throws SQLException {
    try (Connection tx = dataSource.getConnection()) {
      tx.setAutoCommit(false);
      for (OutboxMessage message : messages) {
        publisher.publish(tx, message);
      }
      tx.commit();
    }
  }

  private static OutboxMessage placed(String id) {
    return OutboxMessage.to("orders").type("order.placed").body(new Order(id)).build();
  }

  private OutboxAssert outbox() {
    return postgres.assertThatOutbox();
  }

  private static void assertFails(ThrowingCallable assertion, String... words) {
    Assertions.assertThatThrownBy(assertion)
        .isInstanceOf(AssertionError.class)
        .hasMessageContainingAll(words);
  }

  @Test
  void namesTheOutboxInItsSchema() {
    assertThat(table.qualifiedName()).isEqualTo("\"outbox_test_kit\".\"Events\"");
  }

  @Test
  void seesWhatWasCommitted() throws SQLException {
    publish(
        OutboxMessage.to("orders")
            .type("order.placed")
            .orderingKey("acme")
            .timerId("t")
            .header("tenant", "a \"quoted\" \\ ü")
            .deliverIn(Duration.ofHours(1))
            .body(new Order("o-1"))
            .build());
    try (Connection tx = dataSource.getConnection()) {
      tx.setAutoCommit(false);
      publisher.publish(tx, placed("o-2"));

      outbox()
          .hasPublishedExactly("orders", 1)
          .codec(Jackson2Codec.standard())
          .hasPublished("orders", "order.placed", new Order("o-1"));
      tx.rollback();
    }

    assertThat(outbox().published("orders"))
        .singleElement()
        .satisfies(
            row -> {
              assertThat(row.type()).contains("order.placed");
              assertThat(row.orderingKey()).contains("acme");
              assertThat(row.timerId()).contains("t");
              assertThat(row.header("tenant")).contains("a \"quoted\" \\ ü");
              assertThat(row.header("content-type")).contains("application/json");
              assertThat(row.payload()).isEqualTo(Payload.ofText("{\"id\":\"o-1\"}"));
              assertThat(Duration.between(row.createdAt(), row.availableAt()))
                  .isBetween(Duration.ofMinutes(59), Duration.ofMinutes(61));
              assertThat(row.attempts()).isZero();
              assertThat(row.lastError()).isEmpty();
            });
    outbox().isDrained("orders"); // what is there is due later
    assertFails(
        () -> outbox().hasPublished("orders", "order.paid"),
        "Table \"outbox_test_kit\".\"Events\" should have a message of type 'order.paid'",
        "o-1");
  }

  @Test
  void readsHeadersThatWereWrittenByHand() throws SQLException {
    try (Connection connection = dataSource.getConnection();
        Statement statement = connection.createStatement()) {
      statement.execute(
          "insert into %s (queue, payload, headers) values ('odd', '', '{\"n\": 1, \"null\": null}'), ('odd', '', '[1]')"
              .formatted(table.qualifiedName()));
    }

    assertThat(outbox().published("odd"))
        .extracting(OutboxRow::headers)
        .containsExactlyInAnyOrder(Map.of("n", "1", "null", "null"), Map.of());
  }

  @Test
  void awaitsASubscriberAndFindsItsDeadLetters() throws SQLException {
    publish(placed("o-1"), placed("o-2"));
    assertFails(() -> outbox().isDrained("orders"), "it has 2:");
    OutboxSubscriber subscriber =
        OutboxSubscriber.builder("orders")
            .store(PostgresOutbox.on(dataSource, table).store())
            .deadLetters(DeadLetterQueue.in(SCHEMA, "Events_dlq"))
            .codec(Jackson2Codec.standard())
            .on(
                "order.placed",
                Order.class,
                (order, delivery) -> {
                  return order.id().equals("o-1") ? Outcome.ack() : Outcome.reject("no");
                })
            .build();
    try (subscriber) {
      subscriber.start();

      outbox().awaitDrained("orders", Duration.ofSeconds(30));
    }

    outbox()
        .hasPublishedNothing()
        .hasNoDeadLetters("mails")
        .hasDeadLetter("orders", "order.placed", FailureReason.REJECTED)
        .deadLettersIn("Events_dlq")
        .deadLettersIn(SCHEMA, "Events_dlq")
        .hasDeadLetter("orders", "order.placed", FailureReason.REJECTED);
    assertThat(outbox().codec(Jackson2Codec.standard()).deadLettered("orders"))
        .singleElement()
        .satisfies(
            dead -> {
              assertThat(dead.row().body(Order.class)).isEqualTo(new Order("o-2"));
              assertThat(dead.exception()).contains("no");
              assertThat(dead.failedAt()).isAfterOrEqualTo(dead.row().createdAt());
            });
  }

  @Test
  void awaitsThatNothingIsLeftAndSaysWhatIs() throws SQLException {
    publish(placed("o-1"));
    CountDownLatch failed = new CountDownLatch(1);
    OutboxSubscriber.Builder builder =
        OutboxSubscriber.builder("orders")
            .store(PostgresOutbox.on(dataSource, table).store())
            .deadLetters(DeadLetterQueue.in(SCHEMA, "Events_dlq"));
    try (OutboxSubscriber failing =
        builder
            .retry(RetryPolicy.constant(Duration.ofHours(1)))
            .otherwise(
                (Payload payload, Delivery delivery) -> {
                  failed.countDown();
                  throw new IllegalStateException("the carrier does not answer");
                })
            .build()) {
      failing.start();
      outbox().awaitDrained("orders", Duration.ofSeconds(30)).hasNoDeadLetters("orders");
    }
    assertThat(failed.getCount()).isZero();
    assertFails(() -> outbox().isEmpty("orders"), "it has 1:", "the carrier does not answer");
    assertFails(
        () -> outbox().awaitEmpty("orders", Duration.ofMillis(10)),
        "after PT0.01S",
        "the carrier does not answer");
    try (Connection connection = dataSource.getConnection();
        Statement statement = connection.createStatement()) {
      statement.execute("delete from " + table.qualifiedName());
    }
    outbox().isEmpty("orders").awaitEmpty("orders", Duration.ZERO);
  }

  @Test
  void refusesASchemaOfDeadLettersThatIsNoName() {
    Assertions.assertThatThrownBy(() -> outbox().deadLettersIn("a.b", "Events_dlq"))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("dead-letter schema name 'a.b'");
  }

  @Test
  void doesNotCountDeadLettersOfAnotherOutbox() throws SQLException {
    try (Connection connection = dataSource.getConnection();
        Statement statement = connection.createStatement()) {
      statement.execute(
          ("insert into %s.\"Events_dlq\" (outbox, original_id, lease_token, queue, payload, deliveries_count,"
                  + " attempts_count, created_at, available_at, failure_reason)"
                  + " values ('public.outbox', 1, 1, 'orders', '', 1, 1, now(), now(), 'rejected')")
              .formatted(SCHEMA));
    }

    outbox().hasNoDeadLetters("orders");
  }

  @Test
  void saysThatATableIsMissing() {
    OutboxAssert missing = OutboxAssertions.assertThatOutbox(dataSource, "no_such_outbox");

    Assertions.assertThatThrownBy(missing::hasPublishedNothing)
        .isInstanceOf(IllegalStateException.class)
        .hasMessageContainingAll("no_such_outbox", "are the migrations applied?");
  }
}
