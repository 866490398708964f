package dev.outbox4j.dlq.engine;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import dev.outbox4j.AckMode;
import dev.outbox4j.Batch;
import dev.outbox4j.Delivery;
import dev.outbox4j.OutboxMessage;
import dev.outbox4j.OutboxSubscriber;
import dev.outbox4j.Outcome;
import dev.outbox4j.Payload;
import dev.outbox4j.RetryPolicy;
import dev.outbox4j.SubscriberEvents.Phase;
import dev.outbox4j.codec.jackson2.Jackson2Codec;
import dev.outbox4j.dlq.DeadLetterQueue;
import dev.outbox4j.migrations.DedupMigrations;
import dev.outbox4j.postgres.PostgresOutbox;
import dev.outbox4j.postgres.testing.PostgresExtension;
import dev.outbox4j.postgres.testing.TestDatabase;
import java.nio.charset.StandardCharsets;
import java.sql.Connection;
import java.sql.SQLException;
import java.time.Duration;
import java.time.OffsetDateTime;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** Every row of the table of outcomes, on PostgreSQL. */
@ExtendWith(PostgresExtension.class)
class OutcomesIT {
  record Order(int id) {}

  private final TestDatabase database;
  private EngineFixture engine;
  private String queue;
  private static final AtomicInteger QUEUES = new AtomicInteger();

  OutcomesIT(TestDatabase database) {
    this.database = database;
  }

  @BeforeEach
  void setUp() {
    engine = new EngineFixture(database, 4);
    queue = "outcomes-" + QUEUES.incrementAndGet();
  }

  @AfterEach
  void tearDown() {
    engine.close();
  }

  @Test
  void normalReturnDeletesTheRow() {
    List<String> bodies = new CopyOnWriteArrayList<>();
    engine.start(
        engine
            .subscriber(queue)
            .on(
                "t",
                String.class,
                (text, delivery) -> {
                  bodies.add(text);
                }));
    engine.publish(queue, "t", "hello");
    await().untilAsserted(() -> assertThat(engine.events.acked).hasValue(1));
    assertThat(bodies).containsExactly("hello");
    assertThat(engine.rows(queue)).isZero();
    assertThat(engine.deadLetters(queue)).isZero();
  }

  @Test
  void manualModeAcksWhatTheHandlerDecides() {
    engine.start(
        engine
            .subscriber(queue)
            .ackMode(AckMode.MANUAL)
            .on(
                "t",
                (payload, delivery) -> {
                  delivery.decide(Outcome.ack());
                }));
    engine.publish(queue, "t", "x");
    await().untilAsserted(() -> assertThat(engine.events.acked).hasValue(1));
    assertThat(engine.rows(queue)).isZero();
  }

  @Test
  void manualModeRetriesWhatTheHandlerDidNotDecide() {
    engine.start(
        engine
            .subscriber(queue)
            .ackMode(AckMode.MANUAL)
            .retry(RetryPolicy.constant(Duration.ofHours(1)))
            .on("t", (payload, delivery) -> {}));
    long id = engine.publish(queue, "t", "x");
    await().untilAsserted(() -> assertThat(engine.events.retried).hasSize(1));
    assertThat(engine.column(Integer.class, "attempts_count", id)).isEqualTo(1);
    assertThat(engine.column(String.class, "last_error", id)).contains("without deciding");
    assertThat(engine.events.acked).hasValue(0);
  }

  @Test
  void exceptionMakesTheRowDueAgainAfterThePolicysDelay() {
    engine.start(
        engine
            .subscriber(queue)
            .retry(RetryPolicy.constant(Duration.ofHours(1)))
            .on(
                "t",
                (Payload payload, Delivery delivery) -> {
                  throw new IllegalStateException("boom");
                }));
    long id = engine.publish(queue, "t", "x");
    await()
        .untilAsserted(
            () -> assertThat(engine.events.retried).containsExactly(Duration.ofHours(1)));
    assertThat(engine.column(Integer.class, "attempts_count", id)).isEqualTo(1);
    assertThat(engine.column(Integer.class, "deliveries_count", id)).isEqualTo(1);
    assertThat(engine.column(String.class, "last_error", id)).contains("boom");
    assertThat(engine.column(Boolean.class, "lease_until is null", id)).isTrue();
    assertThat(
            engine.column(
                Boolean.class,
                "available_at between now() + interval '59 minutes' and now() + interval '1 hour'",
                id))
        .isTrue();
    assertThat(engine.column(OffsetDateTime.class, "first_attempt_at", id)).isNotNull();
  }

  @Test
  void failedMessageSucceedsLater() {
    List<Integer> attempts = new CopyOnWriteArrayList<>();
    engine.start(
        engine
            .subscriber(queue)
            .on(
                "t",
                (payload, delivery) -> {
                  attempts.add(delivery.attempt());
                  if (delivery.attempt() < 3) {
                    throw new IllegalStateException("not yet");
                  }
                }));
    engine.publish(queue, "t", "x");
    await().untilAsserted(() -> assertThat(engine.events.acked).hasValue(1));
    assertThat(attempts).containsExactly(1, 2, 3);
    assertThat(engine.rows(queue)).isZero();
  }

  @Test
  void retryOutcomeCountsAsAttempt() {
    engine.start(
        engine
            .subscriber(queue)
            .retry(RetryPolicy.constant(Duration.ofHours(1)))
            .on(
                "t",
                Payload.class,
                (payload, delivery) -> {
                  return Outcome.retry("later");
                }));
    long id = engine.publish(queue, "t", "x");
    await().untilAsserted(() -> assertThat(engine.events.retried).hasSize(1));
    assertThat(engine.column(Integer.class, "attempts_count", id)).isEqualTo(1);
    assertThat(engine.column(String.class, "last_error", id)).isEqualTo("later");
  }

  @Test
  void exhaustedPolicyDeadLetters() {
    AtomicInteger runs = new AtomicInteger();
    engine.start(
        engine
            .subscriber(queue)
            .on(
                "t",
                (Payload payload, Delivery delivery) -> {
                  runs.incrementAndGet();
                  throw new IllegalStateException("always");
                }));
    long id = engine.publish(queue, "t", "x");
    await()
        .untilAsserted(
            () -> assertThat(engine.events.deadLettered).containsExactly("retry_terminal"));
    assertThat(runs).hasValue(3);
    assertThat(engine.rows(queue)).isZero();
    assertThat(engine.deadLetter(String.class, "failure_reason", id)).isEqualTo("retry_terminal");
    assertThat(engine.deadLetter(Integer.class, "attempts_count", id)).isEqualTo(3);
    assertThat(engine.deadLetter(String.class, "last_exception", id)).contains("always");
  }

  @Test
  void permanentExceptionDeadLettersAtOnce() {
    engine.start(
        engine
            .subscriber(queue)
            .retry(RetryPolicy.standard().giveUpOn(IllegalArgumentException.class))
            .on(
                "t",
                (Payload payload, Delivery delivery) -> {
                  throw new IllegalArgumentException("bad");
                }));
    long id = engine.publish(queue, "t", "x");
    await()
        .untilAsserted(
            () -> assertThat(engine.events.deadLettered).containsExactly("retry_terminal"));
    assertThat(engine.deadLetter(Integer.class, "attempts_count", id)).isEqualTo(1);
  }

  @Test
  void withoutDeadLettersTerminalFailuresAreDeleted() {
    OutboxSubscriber.Builder builder =
        OutboxSubscriber.builder(queue)
            .deleteTerminalFailures()
            .store(PostgresOutbox.on(engine.pool, database.table()).store())
            .retry(RetryPolicy.none())
            .events(engine.events)
            .on(
                "t",
                (Payload payload, Delivery delivery) -> {
                  throw new IllegalStateException("always");
                });
    engine.start(builder);
    engine.publish(queue, "t", "x");
    await()
        .untilAsserted(
            () ->
                assertThat(engine.events.deadLettered).containsExactly("retry_terminal (deleted)"));
    assertThat(engine.rows(queue)).isZero();
    assertThat(engine.deadLetters(queue)).isZero();
    assertThat(engine.events.acked).hasValue(0);
  }

  @Test
  void rejectionDeadLetters() {
    engine.start(
        engine
            .subscriber(queue)
            .on(
                "t",
                Payload.class,
                (payload, delivery) -> {
                  return Outcome.reject("not for us");
                }));
    long id = engine.publish(queue, "t", "x");
    await().untilAsserted(() -> assertThat(engine.events.deadLettered).containsExactly("rejected"));
    assertThat(engine.deadLetter(String.class, "last_exception", id)).isEqualTo("not for us");
  }

  @Test
  void rejectOnErrorDeadLettersAtTheFirstException() {
    engine.start(
        engine
            .subscriber(queue)
            .ackMode(AckMode.REJECT_ON_ERROR)
            .on(
                "t",
                (Payload payload, Delivery delivery) -> {
                  throw new IllegalStateException("no");
                }));
    long id = engine.publish(queue, "t", "x");
    await().untilAsserted(() -> assertThat(engine.events.deadLettered).containsExactly("rejected"));
    assertThat(engine.deadLetter(Integer.class, "attempts_count", id)).isEqualTo(1);
    assertThat(engine.events.retried).isEmpty();
  }

  @Test
  void retryAfterIsDueAfterItsOwnDelayAndCounts() {
    engine.start(
        engine
            .subscriber(queue)
            .on(
                "t",
                Payload.class,
                (payload, delivery) -> {
                  return Outcome.retryAfter(Duration.ofHours(2));
                }));
    long id = engine.publish(queue, "t", "x");
    await()
        .untilAsserted(
            () -> assertThat(engine.events.retried).containsExactly(Duration.ofHours(2)));
    assertThat(engine.column(Integer.class, "attempts_count", id)).isEqualTo(1);
    assertThat(engine.column(Boolean.class, "available_at > now() + interval '119 minutes'", id))
        .isTrue();
  }

  @Test
  void rescheduleResetsAttempts() {
    AtomicInteger runs = new AtomicInteger();
    engine.start(
        engine
            .subscriber(queue)
            .on(
                "t",
                Payload.class,
                (payload, delivery) -> {
                  return runs.incrementAndGet() == 1
                      ? Outcome.retryAfter(Duration.ZERO)
                      : Outcome.reschedule(Duration.ofHours(1));
                }));
    long id = engine.publish(queue, "t", "x");
    await().untilAsserted(() -> assertThat(engine.events.rescheduled).hasSize(1));
    assertThat(engine.events.retried).hasSize(1);
    assertThat(engine.column(Integer.class, "attempts_count", id)).isZero();
    assertThat(engine.column(Boolean.class, "first_attempt_at is null and last_error is null", id))
        .isTrue();
    assertThat(engine.column(Boolean.class, "available_at > now() + interval '59 minutes'", id))
        .isTrue();
  }

  @Test
  void whatIsLeftToOthersKeepsItsAttemptsAndItsDeliveries() {
    AtomicInteger runs = new AtomicInteger();
    engine.start(
        engine
            .subscriber(queue)
            .on(
                "t",
                Payload.class,
                (payload, delivery) -> {
                  return switch (runs.incrementAndGet()) {
                    case 1 -> Outcome.retryAfter(Duration.ZERO);
                    case 2, 3, 4 -> Outcome.leave(Duration.ZERO);
                    default -> Outcome.leave(Duration.ofHours(1));
                  };
                }));
    long id = engine.publish(queue, "t", "x");
    await().untilAsserted(() -> assertThat(engine.events.rescheduled).hasSize(4));
    assertThat(engine.events.retried).hasSize(1);
    assertThat(engine.column(Integer.class, "attempts_count", id)).isEqualTo(1);
    assertThat(engine.column(Integer.class, "deliveries_count", id)).isEqualTo(1);
    assertThat(engine.column(String.class, "last_error", id))
        .startsWith("left to other subscribers since 20");
    assertThat(engine.column(Boolean.class, "available_at > now() + interval '59 minutes'", id))
        .isTrue();
  }

  @Test
  void ofABatchWhatIsLeftToOthersComesAgainAndTheRestIsAcked() {
    engine.publish(queue, "t", 5);
    engine.start(
        engine
            .subscriber(queue)
            .onBatch(
                "t",
                String.class,
                Batch.of(5),
                messages -> {
                  messages.stream()
                      .filter(each -> each.body().equals("m3"))
                      .forEach(each -> each.delivery().decide(Outcome.leave(Duration.ofHours(1))));
                }));
    await().untilAsserted(() -> assertThat(engine.events.acked).hasValue(4));
    await()
        .untilAsserted(
            () -> assertThat(engine.events.rescheduled).containsExactly(Duration.ofHours(1)));
    assertThat(
            database.one(
                String.class,
                "select convert_from(payload, 'UTF8') || ' ' || attempts_count || ' '"
                    + " || deliveries_count || ' ' || (available_at > now() + interval '59 minutes')"
                    + " from outbox where queue = ?",
                queue))
        .isEqualTo("m3 0 0 true");
  }

  /**
   * Who is told to stop and gives its message to others does not make them wait for the lease, if
   * that comes in time: an ack that waits for a lock keeps the stop from being over before.
   */
  @Test
  void whatAHandlerLeavesToOthersWhenTheStopInterruptsItIsFreeAtOnce() throws SQLException {
    CompletableFuture<Void> begun = new CompletableFuture<>();
    CompletableFuture<Void> locked = new CompletableFuture<>();
    try (Connection stranger = database.plain().getConnection()) {
      stranger.setAutoCommit(false);
      OutboxSubscriber subscriber =
          engine.start(
              engine
                  .subscriber(queue)
                  .gracefulTimeout(Duration.ofMillis(200))
                  .on(
                      "locked",
                      (payload, delivery) -> {
                        begun.join();
                        stranger
                            .createStatement()
                            .execute(
                                "select from outbox where id = " + delivery.id() + " for update");
                        locked.complete(null);
                      })
                  .on(
                      "t",
                      Payload.class,
                      (payload, delivery) -> {
                        begun.complete(null);
                        try {
                          new CountDownLatch(1).await();
                          return Outcome.ack();
                        } catch (InterruptedException stopped) {
                          return Outcome.leave(Duration.ZERO);
                        }
                      }));
      engine.publish(queue, "locked", "x");
      long id = engine.publish(queue, "t", "x");
      locked.join();

      subscriber.stop();

      stranger.rollback();
      assertThat(engine.column(Boolean.class, "lease_until is null", id)).isTrue();
      assertThat(engine.column(Integer.class, "attempts_count", id)).isZero();
      assertThat(engine.column(Integer.class, "deliveries_count", id)).isZero();
    }
  }

  @Test
  void undecodablePayloadDeadLettersWithItsBytesAndWithoutTheHandler() {
    AtomicInteger runs = new AtomicInteger();
    engine.start(
        engine
            .subscriber(queue)
            .codec(Jackson2Codec.standard())
            .on(
                "t",
                Order.class,
                (order, delivery) -> {
                  runs.incrementAndGet();
                }));
    long bad = engine.publish(queue, "t", "{not json");
    engine.publish(queue, "t", "{\"id\": 7}");
    await()
        .untilAsserted(() -> assertThat(engine.events.deadLettered).containsExactly("undecodable"));
    await().untilAsserted(() -> assertThat(engine.events.acked).hasValue(1));
    assertThat(runs).hasValue(1);
    assertThat(engine.deadLetter(byte[].class, "payload", bad))
        .isEqualTo("{not json".getBytes(StandardCharsets.UTF_8));
  }

  @Test
  void tooManyDeliveriesDeadLetterWithoutTheHandler() {
    AtomicInteger runs = new AtomicInteger();
    long id = engine.publish(queue, "t", "x");
    database.update("update outbox set deliveries_count = 5 where id = ?", id);
    engine.start(
        engine
            .subscriber(queue)
            .maxDeliveries(5)
            .on(
                "t",
                (payload, delivery) -> {
                  runs.incrementAndGet();
                }));
    await()
        .untilAsserted(
            () -> assertThat(engine.events.deadLettered).containsExactly("max_deliveries"));
    assertThat(runs).hasValue(0);
    assertThat(engine.deadLetter(Integer.class, "deliveries_count", id)).isEqualTo(6);
  }

  @Test
  void byDefaultDeliveriesAreBoundedByTheAttemptsOfTheType() {
    long bad = engine.publish(queue, "t", "x");
    long good = engine.publish(queue, "other", "x");
    database.update("update outbox set deliveries_count = 22 where queue = ?", queue);
    engine.start(
        OutboxSubscriber.builder(queue)
            .store(PostgresOutbox.on(engine.pool, database.table()).store())
            .deadLetters(DeadLetterQueue.in("outbox_dlq"))
            .retry("t", RetryPolicy.standard().attempts(2))
            .events(engine.events)
            .otherwise((payload, delivery) -> {}));
    await().untilAsserted(() -> assertThat(engine.events.acked).hasValue(1));
    await()
        .untilAsserted(
            () -> assertThat(engine.events.deadLettered).containsExactly("max_deliveries"));
    assertThat(engine.deadLetter(String.class, "last_exception", bad))
        .isEqualTo("claimed 23 times, at most 22 are allowed");
    assertThat(good).isGreaterThan(bad);
  }

  @Test
  void asManyDeliveriesAsAllowedReachTheHandler() {
    long id = engine.publish(queue, "t", "x");
    database.update("update outbox set deliveries_count = 4 where id = ?", id);
    engine.start(engine.subscriber(queue).maxDeliveries(5).on("t", (payload, delivery) -> {}));
    await().untilAsserted(() -> assertThat(engine.events.acked).hasValue(1));
  }

  @Test
  void unknownTypeIsRetriedAndInTheEndDeadLettered() {
    engine.start(engine.subscriber(queue).on("known", (payload, delivery) -> {}));
    long id = engine.publish(queue, "newer", "x");
    await()
        .untilAsserted(
            () -> assertThat(engine.events.deadLettered).containsExactly("retry_terminal"));
    assertThat(engine.deadLetter(String.class, "last_exception", id))
        .contains("No handler for type 'newer'");
  }

  @Test
  void fallbackHandlesUnknownTypes() {
    List<String> types = new CopyOnWriteArrayList<>();
    engine.start(
        engine
            .subscriber(queue)
            .on("known", (payload, delivery) -> {})
            .otherwise(
                (payload, delivery) -> {
                  types.add(delivery.type().orElse(null));
                }));
    engine.publish(queue, "newer", "x");
    await().untilAsserted(() -> assertThat(engine.events.acked).hasValue(1));
    assertThat(types).containsExactly("newer");
  }

  @Test
  void totalTimeEndsRetries() {
    engine.start(
        engine
            .subscriber(queue)
            .retry(
                RetryPolicy.constant(Duration.ofMillis(20))
                    .attempts(1_000)
                    .maxTotalTime(Duration.ofMillis(300)))
            .on(
                "t",
                (Payload payload, Delivery delivery) -> {
                  throw new IllegalStateException("always");
                }));
    engine.publish(queue, "t", "x");
    await()
        .untilAsserted(
            () -> assertThat(engine.events.deadLettered).containsExactly("retry_terminal"));
    assertThat(engine.events.retried).hasSizeBetween(1, 30);
  }

  @Test
  void stageIsAckedOnlyWhenItCompletes() {
    CompletableFuture<Void> work = new CompletableFuture<>();
    CompletableFuture<Void> begun = new CompletableFuture<>();
    engine.start(
        engine
            .subscriber(queue)
            .workers(1)
            .on(
                "t",
                Payload.class,
                (payload, delivery) -> {
                  begun.complete(null);
                  return work;
                }));
    engine.publish(queue, "t", "x");
    begun.join();
    assertThat(engine.rows(queue)).isEqualTo(1);
    assertThat(engine.events.acked).hasValue(0);
    work.complete(null);
    await().untilAsserted(() -> assertThat(engine.events.acked).hasValue(1));
    assertThat(engine.rows(queue)).isZero();
  }

  @Test
  void failedStageIsRetried() {
    engine.start(
        engine
            .subscriber(queue)
            .retry(RetryPolicy.constant(Duration.ofHours(1)))
            .on(
                "t",
                Payload.class,
                (payload, delivery) -> {
                  return CompletableFuture.supplyAsync(
                      () -> {
                        throw new IllegalStateException("late");
                      });
                }));
    long id = engine.publish(queue, "t", "x");
    await().untilAsserted(() -> assertThat(engine.events.retried).hasSize(1));
    assertThat(engine.column(String.class, "last_error", id)).contains("late");
  }

  @Test
  void nullInPlaceOfAnOutcomeOrAStageIsAFailureAndNoAck() {
    engine.start(
        engine
            .subscriber(queue)
            .retry(RetryPolicy.constant(Duration.ofHours(1)))
            .on(
                "outcome",
                Payload.class,
                (payload, delivery) -> {
                  return null;
                })
            .on(
                "stage",
                Payload.class,
                (payload, delivery) -> {
                  return null;
                }));
    long outcome = engine.publish(queue, "outcome", "x");
    long stage = engine.publish(queue, "stage", "x");
    await().untilAsserted(() -> assertThat(engine.events.retried).hasSize(2));
    assertThat(engine.column(String.class, "last_error", outcome)).contains("returned null");
    assertThat(engine.column(String.class, "last_error", stage)).contains("returned null");
    assertThat(engine.events.acked).hasValue(0);
  }

  @Test
  void errorIsTheMessagesFailureAndNotTheSubscribers() {
    engine.start(
        engine
            .subscriber(queue)
            .on(
                "t",
                String.class,
                (text, delivery) -> {
                  if (text.equals("bad")) {
                    throw new StackOverflowError();
                  }
                }));
    engine.publish(queue, "t", "bad");
    engine.publish(queue, "t", "good");
    await()
        .untilAsserted(
            () -> assertThat(engine.events.deadLettered).containsExactly("retry_terminal"));
    await().untilAsserted(() -> assertThat(engine.events.acked).hasValue(1));
  }

  @Test
  void ofABatchOfAHundredThePoisonMessageIsADeadLetterAndTheOthersAreAckedInTheirFirstDelivery() {
    Map<String, Integer> deliveries = new ConcurrentHashMap<>();
    List<Integer> attempts = new CopyOnWriteArrayList<>();
    engine.publish(queue, "t", 100);
    engine.start(
        engine
            .subscriber(queue)
            .onBatch(
                "t",
                String.class,
                Batch.of(100).linger(Duration.ofSeconds(5)), // so that they come together
                messages -> {
                  messages.forEach(
                      each ->
                          deliveries.merge(each.body(), each.delivery().deliveries(), Math::max));
                  if (messages.stream().anyMatch(each -> each.body().equals("m37"))) {
                    if (messages.size() == 1) {
                      attempts.add(messages.get(0).delivery().attempt());
                    }
                    throw new IllegalStateException("all or nothing");
                  }
                }));
    await().atMost(Duration.ofSeconds(20)).until(() -> engine.rows(queue) == 0);
    assertThat(engine.events.deadLettered).containsExactly("retry_terminal");
    assertThat(engine.events.acked).hasValue(99);
    assertThat(deliveries.remove("m37")).isEqualTo(3);
    assertThat(deliveries).hasSize(99);
    assertThat(deliveries.values()).containsOnly(1);
    assertThat(attempts).as("of its own, alone").containsExactly(1, 2, 3);
  }

  /** By the server's clock, for keys that were published. */
  private void passes(int seconds) {
    database.update(
        "update outbox_dedup set published_at = published_at - make_interval(secs => ?),"
            + " kept_until = kept_until - make_interval(secs => ?)",
        seconds,
        seconds);
  }

  private boolean isPublished(OutboxMessage message) throws SQLException {
    try (Connection connection = database.plain().getConnection()) {
      connection.setAutoCommit(false);
      boolean published = !engine.publisher.publish(connection, message).deduplicated();
      connection.commit();
      return published;
    }
  }

  @Test
  void aDedupKeyIsTakenForItsTimeThoughItsMessageIsADeadLetter() throws SQLException {
    DedupMigrations.of("public", "outbox").migrate(database.plain());
    engine.start(
        engine
            .subscriber(queue)
            .on(
                "t",
                Payload.class,
                (payload, delivery) -> {
                  return Outcome.reject("never");
                }));
    OutboxMessage message =
        OutboxMessage.to(queue).type("t").body("x").dedupKey("k", Duration.ofHours(1)).build();
    assertThat(isPublished(message)).isTrue();
    await().until(() -> engine.deadLetters(queue) == 1);
    passes(3_599);
    assertThat(isPublished(message)).isFalse();
    passes(2);
    assertThat(isPublished(message)).isTrue();
    await().until(() -> engine.deadLetters(queue) == 2);
  }

  @SuppressWarnings("ImmutableEnumChecker") // outcomes are immutable
  enum Write {
    ACK(Outcome.ack(), Phase.ACK),
    RETRY(Outcome.retry(), Phase.RETRY),
    RESCHEDULE(Outcome.reschedule(Duration.ofHours(1)), Phase.RESCHEDULE),
    LEAVE(Outcome.leave(Duration.ofHours(1)), Phase.RETRY),
    DEAD_LETTER(Outcome.reject("no"), Phase.DEAD_LETTER);

    final Outcome outcome;
    final Phase phase;

    Write(Outcome outcome, Phase phase) {
      this.outcome = outcome;
      this.phase = phase;
    }
  }

  @ParameterizedTest
  @EnumSource(Write.class)
  void writeAfterALostLeaseChangesNothing(Write write) {
    engine.start(
        engine
            .subscriber(queue)
            .on(
                "t",
                Payload.class,
                (payload, delivery) -> {
                  database.update(
                      "update outbox set lease_token = lease_token + 1, leased_by = 'thief',"
                          + " lease_until = now() + interval '1 hour' where id = ?",
                      delivery.id());
                  return write.outcome;
                }));
    long id = engine.publish(queue, "t", "x");
    await().untilAsserted(() -> assertThat(engine.events.leaseLost).containsExactly(write.phase));
    assertThat(engine.column(String.class, "leased_by", id)).isEqualTo("thief");
    assertThat(engine.column(Integer.class, "attempts_count", id)).isZero();
    assertThat(engine.deadLetters(queue)).isZero();
    assertThat(engine.events.acked).hasValue(0);
    assertThat(engine.events.deadLettered).isEmpty();
  }
}
