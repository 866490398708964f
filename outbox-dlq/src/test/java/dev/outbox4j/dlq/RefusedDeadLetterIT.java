package dev.outbox4j.dlq;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import com.zaxxer.hikari.HikariDataSource;
import dev.outbox4j.Delivery;
import dev.outbox4j.OutboxSubscriber;
import dev.outbox4j.Payload;
import dev.outbox4j.RetryPolicy;
import dev.outbox4j.postgres.PostgresOutbox;
import dev.outbox4j.postgres.testing.PostgresExtension;
import dev.outbox4j.postgres.testing.TestDatabase;
import java.time.Duration;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;

/** A whole subscriber whose dead-letter table refuses one row. */
@ExtendWith(PostgresExtension.class)
class RefusedDeadLetterIT {
  private static final Duration PATIENCE = Duration.ofSeconds(30);

  private final TestDatabase database;
  private HikariDataSource pool;
  private OutboxSubscriber subscriber;

  RefusedDeadLetterIT(TestDatabase database) {
    this.database = database;
  }

  @BeforeEach
  void begin() {
    database.update("truncate outbox, outbox_dlq");
    pool = database.pool(3);
  }

  @AfterEach
  void end() {
    subscriber.stop();
    assertThat(pool.getHikariPoolMXBean().getActiveConnections()).isZero();
    pool.close();
  }

  @Test
  void holdsBackTheRowThatTheTableRefusesAndNoOther() {
    database.update(
        "alter table outbox_dlq add constraint no_bad check (ordering_key is distinct from 'bad')");
    try {
      for (int i = 0; i < 10; i++) {
        publish("poison", "x");
      }
      database.update(
          "insert into outbox (queue, type, payload, ordering_key)"
              + " values ('orders', 'poison', '', 'bad')");
      for (int i = 0; i < 10; i++) {
        publish("poison", "x");
      }
      start(builder());

      awaitDeadLetters(20);
      assertThat(database.list(String.class, "select ordering_key from outbox"))
          .containsExactly("bad");
      await().atMost(PATIENCE).until(() -> subscriber.health().deadLettersWaiting() == 1);
    } finally {
      database.update("alter table outbox_dlq drop constraint no_bad");
    }

    awaitDeadLetters(21);
    assertThat(database.count("outbox")).isZero();
  }

  @Test
  void movesWhatTheTableTakesFromAmongMuchThatItRefuses() {
    long pairs = 100;
    database.update(
        "alter table outbox_dlq add constraint no_bad check (ordering_key is distinct from 'bad')");
    try {
      database.update(
          "insert into outbox (queue, type, payload, ordering_key)"
              + " select 'orders', 'poison', '', case when n % 2 = 0 then 'bad' end"
              + " from generate_series(1, ?) n",
          2 * pairs);
      start(builder());

      awaitDeadLetters(pairs);
      assertThat(database.list(String.class, "select distinct ordering_key from outbox"))
          .containsExactly("bad");
      await().atMost(PATIENCE).until(() -> subscriber.health().deadLettersWaiting() == pairs);
      assertThat(subscriber.health().failing()).isTrue();
      assertThat(subscriber.health().lastFailure()).get().asString().contains("no_bad");
    } finally {
      database.update("alter table outbox_dlq drop constraint no_bad");
    }

    awaitDeadLetters(2 * pairs);
    assertThat(database.count("outbox")).isZero();
    await().atMost(PATIENCE).until(() -> subscriber.health().healthy());
  }

  private OutboxSubscriber.Builder builder() {
    return OutboxSubscriber.builder("orders")
        .store(PostgresOutbox.on(pool, database.table()).store())
        .deadLetters(DeadLetterQueue.in("outbox_dlq"))
        .maxDeliveries(5)
        .retry(RetryPolicy.none())
        .on(
            "poison",
            (Payload payload, Delivery delivery) -> {
              throw new IllegalStateException("poison");
            });
  }

  private void start(OutboxSubscriber.Builder builder) {
    subscriber = builder.build();
    subscriber.start();
  }

  private void publish(String type, String body) {
    database.one(
        Long.class, "select outbox_publish('orders', convert_to(?, 'utf8'), ?)", body, type);
  }

  private void awaitDeadLetters(long count) {
    await()
        .atMost(PATIENCE)
        .untilAsserted(() -> assertThat(database.count("outbox_dlq")).isEqualTo(count));
  }
}
