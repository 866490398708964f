package dev.outbox4j.dlq.engine;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import com.zaxxer.hikari.HikariDataSource;
import dev.outbox4j.Batch;
import dev.outbox4j.BatchMessage;
import dev.outbox4j.OutboxMessage;
import dev.outbox4j.OutboxSubscriber;
import dev.outbox4j.RetryPolicy;
import dev.outbox4j.TypedHandler;
import dev.outbox4j.migrations.OrderedMigrations;
import dev.outbox4j.postgres.PostgresOutbox;
import dev.outbox4j.postgres.testing.PostgresExtension;
import dev.outbox4j.postgres.testing.TestDatabase;
import java.sql.Connection;
import java.time.Duration;
import java.time.Instant;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** No handler begins with a message whose time is over; it goes to the dead letters. */
@ExtendWith(PostgresExtension.class)
class ExpiryIT {
  private static final AtomicInteger QUEUES = new AtomicInteger();
  private static final Duration SOON = Duration.ofSeconds(60);

  private final TestDatabase database;
  private final List<String> handled = new CopyOnWriteArrayList<>();
  private EngineFixture engine;
  private String queue;

  ExpiryIT(TestDatabase database) {
    this.database = database;
  }

  /** How messages are delivered. */
  enum Kind {
    ROW_BY_ROW,
    BATCHES,
    TRANSACTIONAL,
    ORDERED
  }

  @BeforeEach
  void setUp() {
    engine = new EngineFixture(database, 16);
    queue = "expiring-" + QUEUES.incrementAndGet();
    OrderedMigrations.of("public", "outbox", queue).migrate(database.plain());
  }

  @AfterEach
  void tearDown() {
    engine.close();
    database.update("delete from outbox where queue = ?", queue);
  }

  private OutboxSubscriber.Builder subscriber(Kind kind) {
    return subscriber(
        kind,
        (text, delivery) -> {
          handle(text);
        });
  }

  private OutboxSubscriber.Builder subscriber(Kind kind, TypedHandler<String> handler) {
    OutboxSubscriber.Builder builder = engine.subscriber(queue).workers(2);
    return switch (kind) {
      case ROW_BY_ROW -> builder.on("t", String.class, handler);
      case ORDERED -> builder.ordered().on("t", String.class, handler);
      case BATCHES ->
          builder.onBatch(
              "t",
              String.class,
              Batch.of(10).linger(Duration.ofMillis(20)),
              batch -> {
                for (BatchMessage<String> each : batch) {
                  handler.handle(each.body(), each.delivery());
                }
              });
      case TRANSACTIONAL ->
          builder.on(
              "t",
              String.class,
              PostgresOutbox.on(engine.pool, database.table())
                  .transactional(
                      (text, delivery, connection) -> {
                        handler.handle(text, delivery);
                      }));
    };
  }

  private void handle(String text) {
    handled.add(text);
  }

  private static OutboxMessage.Builder message(String queue, String text) {
    return OutboxMessage.to(queue).type("t").orderingKey("k").body(text);
  }

  @ParameterizedTest
  @EnumSource(Kind.class)
  void whatIsExpiredIsADeadLetterAndTheOthersAreHandled(Kind kind) {
    Instant past = Instant.now().minusSeconds(3_600);
    List<Long> ids =
        engine.inTransaction(
            List.of(
                message(queue, "late").expiresAt(past).build(),
                message(queue, "in time").expiresAt(Instant.now().plusSeconds(3_600)).build(),
                message(queue, "soon enough").expiresIn(Duration.ofHours(1)).build(),
                message(queue, "never").build()));
    engine.start(subscriber(kind));

    await().atMost(SOON).until(() -> engine.rows(queue) == 0);
    assertThat(handled).containsExactlyInAnyOrder("in time", "soon enough", "never");
    assertThat(engine.deadLetters(queue)).isEqualTo(1);
    long late = ids.get(0);
    assertThat(engine.deadLetter(String.class, "failure_reason", late)).isEqualTo("expired");
    assertThat(engine.deadLetter(Integer.class, "attempts_count", late)).isZero();
    assertThat(engine.deadLetter(String.class, "last_exception", late))
        .startsWith("expired at " + past.toString().substring(0, 19))
        .endsWith(", before a handler could begin");
  }

  /** They were claimed in time: this process's clock goes on from the server's. */
  @ParameterizedTest
  @EnumSource(
      value = Kind.class,
      names = {"ROW_BY_ROW", "ORDERED"})
  void whatExpiresWhileItWaitsForAWorkerIsNotHandled(Kind kind) {
    CountDownLatch mayEnd = new CountDownLatch(1);
    OutboxSubscriber subscriber =
        engine.start(
            subscriber(
                    kind,
                    (text, delivery) -> {
                      handle(text);
                      mayEnd.await();
                    })
                .workers(1));
    engine.inTransaction(
        List.of(
            message(queue, "first").expiresIn(Duration.ofMillis(1_500)).build(),
            message(queue, "second").expiresIn(Duration.ofMillis(1_500)).build()));
    await().atMost(SOON).until(() -> handled.equals(List.of("first")));
    await()
        .atMost(SOON)
        .until(
            () ->
                database.one(
                    Boolean.class,
                    "select bool_and(expires_at < clock_timestamp()) from outbox where queue = ?",
                    queue));
    assertThat(engine.rows(queue)).isEqualTo(2); // nothing is interrupted, nothing swept away
    mayEnd.countDown();

    await().atMost(SOON).until(() -> engine.rows(queue) == 0);
    assertThat(handled).containsExactly("first");
    assertThat(engine.deadLetters(queue)).isEqualTo(1);
    assertThat(subscriber.health().healthy()).isTrue();
  }

  @ParameterizedTest
  @EnumSource(Kind.class)
  void aRetryThatComesTooLateIsNotHandledAndTellsItsAttempts(Kind kind) {
    AtomicInteger runs = new AtomicInteger();
    engine.start(
        subscriber(
                kind,
                (text, delivery) -> {
                  runs.incrementAndGet();
                  throw new IllegalStateException("always");
                })
            .retry(RetryPolicy.constant(Duration.ofMillis(900)).attempts(5)));
    long id =
        engine
            .inTransaction(
                List.of(message(queue, "fails").expiresIn(Duration.ofMillis(800)).build()))
            .get(0);

    await().atMost(SOON).until(() -> engine.deadLetters(queue) == 1);
    assertThat(runs).hasValue(1);
    assertThat(engine.deadLetter(String.class, "failure_reason", id)).isEqualTo("expired");
    assertThat(engine.deadLetter(Integer.class, "attempts_count", id)).isEqualTo(1);
  }

  @Test
  void aDelayedMessageIsOfUseForItsTimeFromWhenItIsDue() {
    long id =
        engine
            .inTransaction(
                List.of(
                    message(queue, "delayed")
                        .deliverIn(Duration.ofMillis(700))
                        .expiresIn(Duration.ofMinutes(1))
                        .build()))
            .get(0);
    assertThat(engine.column(Boolean.class, "expires_at - available_at >= '1 min'", id)).isTrue();
    assertThat(engine.column(Boolean.class, "expires_at - available_at < '1 min 1 s'", id))
        .isTrue();
    engine.start(subscriber(Kind.ROW_BY_ROW));
    await().atMost(SOON).until(() -> handled.equals(List.of("delayed")));
  }

  /** Whoever redrives a message wants it to be handled. */
  @Test
  void aRedrivenMessageDoesNotExpireAgain() {
    engine.inTransaction(
        List.of(message(queue, "late").expiresAt(Instant.now().minusSeconds(60)).build()));
    engine.start(subscriber(Kind.ROW_BY_ROW));
    await().atMost(SOON).until(() -> engine.deadLetters(queue) == 1);

    database.update(
        """
        with redriven as (
          update outbox_dlq set resolved_at = now(), resolved_by = current_user, resolution = 'redriven'
          where queue = ? and resolved_at is null
          returning *)
        insert into outbox (id, lease_token, queue, type, ordering_key, payload, headers, timer_id)
        select original_id, lease_token, queue, type, ordering_key, payload, headers, timer_id
        from redriven""",
        queue);
    await().atMost(SOON).until(() -> handled.equals(List.of("late")));
  }

  @Test
  void theHandlerSeesWhenItsMessageExpires() {
    List<Instant> seen = new CopyOnWriteArrayList<>();
    Instant at = Instant.parse("2999-01-02T03:04:05.000006Z");
    engine.start(
        engine
            .subscriber(queue)
            .on(
                "t",
                String.class,
                (text, delivery) -> {
                  seen.add(delivery.expiresAt().orElse(Instant.EPOCH));
                }));
    engine.inTransaction(
        List.of(message(queue, "a").expiresAt(at).build(), message(queue, "b").build()));
    await().atMost(SOON).until(() -> engine.rows(queue) == 0);
    assertThat(seen).containsExactlyInAnyOrder(at, Instant.EPOCH);
  }

  @Test
  void whatExpiresWhileItsTransactionWaitsForAConnectionIsNotHandled() throws Exception {
    AtomicInteger handled = new AtomicInteger();
    HikariDataSource one = database.pool(1);
    try (Connection held = one.getConnection()) {
      assertThat(held.isClosed()).isFalse();
      engine.start(
          engine
              .subscriber(queue)
              .workers(1)
              .on(
                  "t",
                  String.class,
                  PostgresOutbox.on(one, database.table())
                      .transactional(
                          (text, delivery, connection) -> {
                            handled.incrementAndGet();
                          })));
      long id =
          engine
              .inTransaction(
                  List.of(message(queue, "code").expiresIn(Duration.ofSeconds(2)).build()))
              .get(0);
      await().atMost(SOON).until(() -> engine.column(Integer.class, "deliveries_count", id) == 1);
      await()
          .atMost(SOON)
          .until(
              () ->
                  database.one(
                      Boolean.class,
                      "select clock_timestamp() > expires_at + interval '100 ms' from outbox where id = ?",
                      id));
    }

    await().atMost(SOON).until(() -> engine.deadLetters(queue) == 1);
    assertThat(
            database.one(
                String.class, "select failure_reason from outbox_dlq where queue = ?", queue))
        .isEqualTo("expired");
    assertThat(handled).hasValue(0);
  }
}
