package dev.outbox4j.dlq;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import com.zaxxer.hikari.HikariDataSource;
import dev.outbox4j.AckMode;
import dev.outbox4j.Delivery;
import dev.outbox4j.FailureReason;
import dev.outbox4j.OutboxSubscriber;
import dev.outbox4j.Outcome;
import dev.outbox4j.Payload;
import dev.outbox4j.RetryPolicy;
import dev.outbox4j.postgres.PostgresOutbox;
import dev.outbox4j.postgres.testing.PostgresExtension;
import dev.outbox4j.postgres.testing.TestDatabase;
import dev.outbox4j.spi.PayloadCodec;
import dev.outbox4j.spi.SubscriberEvents;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;

/** A whole subscriber whose messages fail for good. */
@ExtendWith(PostgresExtension.class)
class SubscriberDeadLettersIT {
  private static final Duration PATIENCE = Duration.ofSeconds(30);

  private final TestDatabase database;
  private final List<String> events = new CopyOnWriteArrayList<>();
  private final AtomicInteger runs = new AtomicInteger();
  private HikariDataSource pool;
  private OutboxSubscriber subscriber;

  SubscriberDeadLettersIT(TestDatabase database) {
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
  void writesTheReasonOfEachWayToFailForGood() {
    publish("rejected-by-outcome", "a");
    publish("throws-permanent", "b");
    publish("throws-always", "c");
    publish("number", "not a number");
    database.update(
        "insert into outbox (queue, type, payload, deliveries_count) values ('orders', 'fine', '', 5)");
    start(
        builder()
            .codec(new NumberCodec())
            .on("number", Integer.class, (number, delivery) -> runs.incrementAndGet())
            .on("fine", delivery -> runs.incrementAndGet()));

    awaitDeadLetters(5);

    assertThat(
            database.list(
                String.class,
                "select type || ' ' || failure_reason || ' ' || attempts_count || ' '"
                    + " || deliveries_count from outbox_dlq"))
        .containsExactlyInAnyOrder(
            "rejected-by-outcome rejected 1 1",
            "throws-permanent retry_terminal 1 1",
            "throws-always retry_terminal 3 3",
            "number undecodable 0 1",
            "fine max_deliveries 0 6");
    assertThat(runs).as("handlers of undecodable and worn-out messages").hasValue(0);
    assertThat(lastException("rejected-by-outcome")).isEqualTo("by decision");
    assertThat(lastException("throws-always")).contains("IllegalStateException: always");
    assertThat(lastException("number")).contains("NumberFormatException");
    assertThat(
            database.one(
                String.class,
                "select convert_from(payload, 'utf8') from outbox_dlq where type = 'number'"))
        .isEqualTo("not a number");
    assertThat(database.count("outbox")).isZero();
    assertThat(events)
        .contains("dead-lettered rejected-by-outcome rejected true")
        .contains("dead-lettered fine max_deliveries true");
  }

  @Test
  void rejectsAnExceptionAtOnceInThatAckMode() {
    publish("throws-always", "x");
    start(builder().ackMode(AckMode.REJECT_ON_ERROR));

    awaitDeadLetters(1);

    assertThat(database.one(String.class, "select failure_reason from outbox_dlq"))
        .isEqualTo("rejected");
    assertThat(database.one(Integer.class, "select deliveries_count from outbox_dlq")).isEqualTo(1);
  }

  @Test
  void changesNothingAndCountsALostLeaseWhenAnotherOwnerHasTheRow() {
    publish("stolen", "x");
    start(
        builder()
            .onOutcome(
                "stolen",
                Payload.class,
                (payload, delivery) -> {
                  database.update(
                      "update outbox set lease_token = lease_token + 1, leased_by = 'thief',"
                          + " lease_until = now() + interval '1 hour' where id = ?",
                      delivery.id());
                  return Outcome.reject("too late");
                }));

    await().atMost(PATIENCE).until(() -> events.contains("lease-lost stolen DEAD_LETTER"));

    assertThat(database.one(String.class, "select leased_by from outbox")).isEqualTo("thief");
    assertThat(database.count("outbox_dlq")).isZero();
    assertThat(events).noneMatch(event -> event.startsWith("dead-lettered"));
  }

  @Test
  void keepsHealthyMessagesFlowingWhileTheTableIsAwayAndMendsItselfOnceItIsBack() {
    database.update("alter table outbox_dlq rename to away");
    try {
      for (int i = 0; i < 20; i++) {
        publish("throws-permanent", "poison");
        publish("fine", "healthy");
      }
      start(builder().on("fine", delivery -> runs.incrementAndGet()));

      await().atMost(PATIENCE).until(() -> subscriber.health().deadLettersWaiting() == 20);
      await().atMost(PATIENCE).until(() -> runs.get() == 20);
      publish("fine", "one more");
      await().atMost(PATIENCE).until(() -> runs.get() == 21);

      assertThat(subscriber.health().healthy()).isFalse();
      assertThat(subscriber.health().lastFailure())
          .hasValueSatisfying(text -> assertThat(text).contains("42P01").contains("outbox_dlq"));
      await().atMost(PATIENCE).until(() -> database.count("outbox") == 20);
      assertThat(database.count("away")).isZero();
    } finally {
      database.update("alter table away rename to outbox_dlq");
    }

    awaitDeadLetters(20);
    assertThat(database.count("outbox")).isZero();
    await().atMost(PATIENCE).until(() -> subscriber.health().healthy());
  }

  @Test
  void holdsBackTheRowThatTheTableRefusesAndNoOther() {
    database.update(
        "alter table outbox_dlq add constraint no_bad check (ordering_key is distinct from 'bad')");
    try {
      for (int i = 0; i < 10; i++) {
        publish("throws-permanent", "x");
      }
      database.update(
          "insert into outbox (queue, type, payload, ordering_key)"
              + " values ('orders', 'throws-permanent', '', 'bad')");
      for (int i = 0; i < 10; i++) {
        publish("throws-permanent", "x");
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

  private OutboxSubscriber.Builder builder() {
    return OutboxSubscriber.builder("orders")
        .store(PostgresOutbox.store(pool, database.table()))
        .deadLetters(DeadLetterQueue.in("outbox_dlq"))
        .maxDeliveries(5)
        .observe(new Recorder())
        .retry(
            RetryPolicy.constant(Duration.ofMillis(1))
                .attempts(3)
                .giveUpOn(UnsupportedOperationException.class))
        .onOutcome(
            "rejected-by-outcome",
            Payload.class,
            (payload, delivery) -> Outcome.reject("by decision"))
        .on(
            "throws-permanent",
            delivery -> {
              throw new UnsupportedOperationException("permanent");
            })
        .on(
            "throws-always",
            delivery -> {
              throw new IllegalStateException("always");
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

  private String lastException(String type) {
    return database.one(String.class, "select last_exception from outbox_dlq where type = ?", type);
  }

  private final class Recorder implements SubscriberEvents {
    @Override
    public void deadLettered(
        String name, Delivery delivery, FailureReason reason, boolean written) {
      events.add("dead-lettered " + delivery.type() + " " + reason.code() + " " + written);
    }

    @Override
    public void leaseLost(String name, Delivery delivery, Phase phase) {
      events.add("lease-lost " + delivery.type() + " " + phase);
    }
  }

  private static final class NumberCodec implements PayloadCodec {
    @Override
    public String contentType() {
      return "text/plain";
    }

    @Override
    public Payload encode(Object body) {
      return Payload.ofText(body.toString());
    }

    @Override
    public <T> T decode(Payload payload, Class<T> type) throws Exception {
      return type.cast(Integer.valueOf(payload.text()));
    }
  }
}
