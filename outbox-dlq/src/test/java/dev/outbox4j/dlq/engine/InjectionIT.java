package dev.outbox4j.dlq.engine;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.awaitility.Awaitility.await;

import com.zaxxer.hikari.HikariDataSource;
import dev.outbox4j.AckMode;
import dev.outbox4j.OutboxMessage;
import dev.outbox4j.OutboxSubscriber;
import dev.outbox4j.Outcome;
import dev.outbox4j.Payload;
import dev.outbox4j.RetryPolicy;
import dev.outbox4j.dlq.DeadLetterQueue;
import dev.outbox4j.migrations.OutboxMigrations;
import dev.outbox4j.postgres.OutboxPublisher;
import dev.outbox4j.postgres.OutboxTable;
import dev.outbox4j.postgres.PostgresOutbox;
import dev.outbox4j.postgres.notify.pgjdbc.PgjdbcListen;
import dev.outbox4j.postgres.testing.PostgresExtension;
import dev.outbox4j.postgres.testing.TestDatabase;
import dev.outbox4j.testing.CapturedLogs;
import java.nio.charset.StandardCharsets;
import java.sql.Connection;
import java.sql.SQLException;
import java.time.Duration;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;

/**
 * A subscriber whose name, queues, types and messages are hostile, on tables whose names are as odd
 * as is allowed: what it delivers, retries and dead-letters is what was published.
 */
@ExtendWith(PostgresExtension.class)
class InjectionIT {
  private static final String SCHEMA = "select -- Schemä";
  private static final String NAME = "Drop Table -- Ünï";
  private static final OutboxTable TABLE = OutboxTable.named(NAME).inSchema(SCHEMA);
  private static final String DEAD = "\"Deäd -- or\".\"table--\"";

  private static final List<String> HOSTILE =
      List.of(
          "'; drop table outbox; --",
          "\"; drop table outbox; --",
          "$$; drop table outbox; $$",
          "\\'; drop table outbox; --",
          "{\"a\",NULL}",
          "? $1 {0} ${x} %s",
          "NULL",
          "a\r\nWARN forged line",
          "\u202egnirts 🐘 ﷽",
          "ü".repeat(127));

  private final TestDatabase database;
  private final RecordedEvents events = new RecordedEvents();

  InjectionIT(TestDatabase database) {
    this.database = database;
  }

  @Test
  void deliversRetriesAndDeadLettersWhatWasPublished() throws SQLException {
    OutboxMigrations.of(SCHEMA, NAME)
        .deadLetters("Deäd -- or", "table--")
        .migrate(database.plain());
    Set<String> delivered = ConcurrentHashMap.newKeySet();
    try (HikariDataSource pool = database.pool(3)) {
      OutboxSubscriber subscriber = subscriber(pool, delivered);
      subscriber.start();
      try {
        await().until(() -> subscriber.health().healthy());
        for (String garbage : HOSTILE) {
          database.one(Long.class, "select count(pg_notify(?, ?))", TABLE.channel(), garbage);
        }
        publish();

        await()
            .untilAsserted(
                () -> assertThat(delivered).containsExactlyInAnyOrderElementsOf(HOSTILE));
        await().untilAsserted(() -> assertThat(database.count(DEAD)).isEqualTo(HOSTILE.size()));
        await().untilAsserted(() -> assertThat(events.acked).hasValue(HOSTILE.size()));
        assertThat(
                database.list(
                    String.class,
                    "select subscriber from \"select -- Schemä\".\"Drop Table -- Ünï_sleepers\""))
            .isNotEmpty()
            .allMatch(owner -> owner.startsWith("'; drop"));
      } finally {
        subscriber.stop();
      }
    }
    assertThat(events.storeFailed).isEmpty();
    for (String value : HOSTILE) {
      assertThat(
              database.one(
                  Boolean.class,
                  "select type = queue || '!' and ordering_key = queue and timer_id = queue || '!'"
                      + " and convert_from(payload, 'UTF8') = queue and headers ->> queue = queue"
                      + " and last_exception = queue and failure_reason = 'rejected' from "
                      + DEAD
                      + " where queue = ?",
                  value))
          .isTrue();
    }
    assertThat(database.count("outbox") + database.count("outbox_dlq")).isZero();
  }

  private OutboxSubscriber subscriber(HikariDataSource pool, Set<String> delivered) {
    OutboxSubscriber.Builder builder =
        OutboxSubscriber.builder(HOSTILE.get(0))
            .name(HOSTILE.get(0))
            .store(PostgresOutbox.on(pool, TABLE).store())
            .listen(PgjdbcListen.on(database.plain()))
            .deadLetters(DeadLetterQueue.in("Deäd -- or", "table--"))
            .retry(RetryPolicy.constant(Duration.ofMillis(1)).attempts(3))
            .maxDeliveries(100)
            .events(events);
    HOSTILE.stream().skip(1).forEach(builder::queues);
    for (String type : HOSTILE) {
      builder.on(
          type,
          Payload.class,
          (body, delivery) -> {
            if (delivery.attempt() == 1) {
              throw new IllegalStateException(type);
            }
            delivered.add(new String(body.bytes(), StandardCharsets.UTF_8));
            return Outcome.ack();
          });
      builder.on(
          type + "!",
          Payload.class,
          (body, delivery) -> {
            return Outcome.reject(delivery.queue());
          });
    }
    return builder.build();
  }

  private void publish() throws SQLException {
    try (Connection connection = database.plain().getConnection()) {
      connection.setAutoCommit(false);
      for (String value : HOSTILE) {
        OutboxMessage.Builder message =
            OutboxMessage.to(value).orderingKey(value).header(value, value).body(value);
        // by two of the publisher's statements
        OutboxPublisher publisher = PostgresOutbox.publisher(TABLE).build();
        publisher.publish(connection, message.type(value).build());
        publisher.publish(connection, message.type(value + "!").timerId(value + "!").build());
      }
      connection.commit();
    }
  }

  @Test
  void aTypeCannotForgeLinesOfTheLog() throws SQLException {
    String queue = "forged";
    try (CapturedLogs logs = new CapturedLogs();
        EngineFixture engine = new EngineFixture(database, 3)) {
      engine.start(
          engine.subscriber(queue).ackMode(AckMode.MANUAL).otherwise((payload, delivery) -> {}));
      engine.publish(queue, "t\r\nERROR forged", "x");
      await().untilAsserted(() -> assertThat(engine.deadLetters(queue)).isEqualTo(1));
      logs.awaitLine(line -> line.contains("type t??ERROR forged: attempt 1 of 3 failed"));
      logs.awaitLine(line -> line.contains("type t??ERROR forged, failed for good"));
      assertThat(logs.lines()).noneMatch(line -> line.contains("\nERROR"));
    }
    database.update("truncate outbox_dlq");
  }

  @Test
  void namesThatNoMessageCanHaveAreRefused() {
    for (String bad : List.of("", " ", "a\0b", "\ud83d", "x".repeat(256))) {
      OutboxSubscriber.Builder builder = OutboxSubscriber.builder("q");
      assertThatIllegalArgumentException().isThrownBy(() -> OutboxSubscriber.builder(bad));
      assertThatIllegalArgumentException().isThrownBy(() -> builder.name(bad));
      assertThatIllegalArgumentException()
          .isThrownBy(() -> builder.on(bad, (payload, delivery) -> {}));
    }
    for (String bad : List.of("a\"b", "a'b", "a;b", "$$", "a\\b", "a\0b", "o".repeat(64))) {
      assertThatIllegalArgumentException().isThrownBy(() -> DeadLetterQueue.in(bad));
      assertThatIllegalArgumentException().isThrownBy(() -> DeadLetterQueue.in("public", bad));
      assertThatIllegalArgumentException().isThrownBy(() -> DeadLetterQueue.in(bad, "dlq"));
    }
  }
}
