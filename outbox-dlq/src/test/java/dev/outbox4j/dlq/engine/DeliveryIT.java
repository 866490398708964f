package dev.outbox4j.dlq.engine;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import dev.outbox4j.OutboxMessage;
import dev.outbox4j.OutboxSubscriber;
import dev.outbox4j.postgres.PostgresOutbox;
import dev.outbox4j.postgres.notify.r2dbc.R2dbcListen;
import dev.outbox4j.postgres.testing.CountingDataSource;
import dev.outbox4j.postgres.testing.PostgresExtension;
import dev.outbox4j.postgres.testing.TestDatabase;
import io.r2dbc.postgresql.PostgresqlConnectionConfiguration;
import io.r2dbc.postgresql.PostgresqlConnectionFactory;
import java.sql.Connection;
import java.sql.Statement;
import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.LockSupport;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;

/** The ordinary path, its costs, and that nothing is lost on it. */
@ExtendWith(PostgresExtension.class)
@Tag("plans")
class DeliveryIT {
  private static final AtomicInteger QUEUES = new AtomicInteger();

  private final TestDatabase database;
  private EngineFixture engine;
  private String queue;

  DeliveryIT(TestDatabase database) {
    this.database = database;
  }

  @BeforeEach
  void setUp() {
    engine = new EngineFixture(database, 6);
    queue = "delivery-" + QUEUES.incrementAndGet();
  }

  @AfterEach
  void tearDown() {
    engine.close();
  }

  private R2dbcListen listen() {
    return R2dbcListen.on(
        new PostgresqlConnectionFactory(
            PostgresqlConnectionConfiguration.builder()
                .host(database.server().host())
                .port(database.server().port())
                .database(database.name())
                .username(database.server().user())
                .password(database.server().password())
                .build()));
  }

  @Test
  void firstMessageWithDefaultSettingsComesAtOnce() {
    AtomicLong handledAt = new AtomicLong();
    OutboxSubscriber subscriber =
        engine.start(
            OutboxSubscriber.builder(queue)
                .deleteTerminalFailures()
                .store(PostgresOutbox.on(engine.pool, database.table()).store())
                .listen(listen())
                .on(
                    "t",
                    (payload, delivery) -> {
                      handledAt.set(System.nanoTime());
                    }));
    awaitAsleep();
    await().until(() -> EngineFixture.sleepsFor(subscriber, Duration.ofSeconds(1)));
    long published = System.nanoTime();
    engine.publish(queue, "t", "x");
    await().pollInterval(Duration.ofMillis(1)).until(() -> handledAt.get() != 0);
    assertThat(Duration.ofNanos(handledAt.get() - published)).isLessThan(Duration.ofSeconds(1));
  }

  @Test
  void everyCommittedMessageIsHandledOnceAndNoRolledBackOne() throws Exception {
    Map<String, Integer> handled = new ConcurrentHashMap<>();
    for (String name : List.of("one", "two")) {
      engine.start(
          engine
              .subscriber(queue)
              .name(queue + name)
              .workers(8)
              .on(
                  "t",
                  String.class,
                  (text, delivery) -> {
                    handled.merge(text, 1, Integer::sum);
                  }));
    }
    int rounds = 200;
    for (int i = 0; i < rounds; i++) {
      try (Connection connection = database.plain().getConnection()) {
        connection.setAutoCommit(false);
        for (int j = 0; j < 10; j++) {
          String body = (i % 5 == 0 ? "rolled-back-" : "committed-") + i + "-" + j;
          engine.publisher.publish(
              connection, OutboxMessage.to(queue).type("t").body(body).build());
        }
        if (i % 5 == 0) {
          connection.rollback();
        } else {
          connection.commit();
        }
      }
    }
    int committed = rounds * 4 / 5 * 10;
    await().untilAsserted(() -> assertThat(engine.events.acked).hasValue(committed));
    assertThat(handled).hasSize(committed);
    assertThat(handled.keySet()).noneMatch(body -> body.startsWith("rolled-back"));
    assertThat(handled.values()).containsOnly(1);
    assertThat(engine.rows(queue)).isZero();
  }

  @Test
  void transactionsThatCommitInReverseOrderLoseNothing() throws Exception {
    Map<String, Long> handled = new ConcurrentHashMap<>();
    Map<String, Long> committed = new HashMap<>();
    AtomicLong busy = new AtomicLong();
    // claims of few rows come back full while there is a backlog, so that they look above their
    // bound, which has passed the early row by when it commits
    engine.start(
        engine
            .subscriber(queue)
            .workers(4)
            .batchSize(20)
            .on(
                "busy",
                (payload, delivery) -> {
                  busy.incrementAndGet();
                })
            .on(
                "t",
                String.class,
                (text, delivery) -> {
                  handled.put(text, System.nanoTime());
                }));
    AtomicBoolean on = new AtomicBoolean(true);
    CompletableFuture<Void> crowd = CompletableFuture.runAsync(() -> keepBusy(on, busy, 200));
    int rounds = 1_000;
    try (Connection first = database.plain().getConnection();
        Connection second = database.plain().getConnection()) {
      first.setAutoCommit(false);
      second.setAutoCommit(false);
      for (int i = 0; i < rounds; i++) {
        String early = "early-" + i;
        String late = "late-" + i;
        engine.publisher.publish(first, OutboxMessage.to(queue).type("t").body(early).build());
        engine.publisher.publish(second, OutboxMessage.to(queue).type("t").body(late).build());
        second.commit();
        committed.put(late, System.nanoTime());
        await().pollInterval(Duration.ofMillis(1)).until(() -> handled.containsKey(late));
        first.commit();
        committed.put(early, System.nanoTime());
      }
      await().untilAsserted(() -> assertThat(handled).hasSize(2 * rounds));
    } finally {
      on.set(false);
      crowd.join();
    }
    assertThat(busy.get()).as("messages that kept the queue busy").isGreaterThan(10L * rounds);
    List<Duration> ages =
        committed.entrySet().stream()
            .map(each -> Duration.ofNanos(handled.get(each.getKey()) - each.getValue()))
            .sorted()
            .toList();
    assertThat(ages.get(ages.size() * 99 / 100))
        .as("from commit to handler, of 99 in a hundred")
        .isLessThan(Duration.ofSeconds(2));
    assertThat(ages.get(ages.size() - 1)).as("of the slowest").isLessThan(Duration.ofSeconds(10));
  }

  /** Keeps a backlog of one and a half times as many messages, or some more. */
  private void keepBusy(AtomicBoolean on, AtomicLong handled, int count) {
    long published = 0;
    while (on.get()) {
      engine.publish(queue, "busy", count);
      published += count;
      long enough = published - count * 3 / 2;
      await()
          .pollInterval(Duration.ofMillis(1))
          .atMost(Duration.ofMinutes(1))
          .until(() -> !on.get() || handled.get() > enough);
    }
  }

  @Test
  void backlogIsDrainedWithFewStatements() {
    int messages = 50_000;
    database.update(
        "insert into outbox (queue, type, payload) select ?, 't', 'x' from generate_series(1, ?)",
        queue,
        messages);
    CountingDataSource counting = new CountingDataSource(engine.pool);
    engine.start(
        OutboxSubscriber.builder(queue)
            .deleteTerminalFailures()
            .store(PostgresOutbox.on(counting, database.table()).store())
            .events(engine.events)
            .on("t", (payload, delivery) -> {}));
    await()
        .pollInterval(Duration.ofMillis(1))
        .untilAsserted(() -> assertThat(engine.events.acked).hasValue(messages));
    double roundTrips = counting.executions();
    double statements = counting.statements();
    assertThat(roundTrips / messages).as("round trips a message").isLessThan(0.005);
    assertThat(statements / messages).as("statements a message").isLessThanOrEqualTo(0.01);
    // how many acks share a statement varies: one more in each claim might get past the others
    assertThat(statements / roundTrips).as("statements a round trip").isLessThan(2.1);
  }

  /** Nor in a database where dead rows cannot be removed. */
  @Test
  void drainDoesNotWalkAgainOverWhatItHasDrained() throws Exception {
    int messages = 200_000;
    long inserted = insertedRows();
    database.update(
        "insert into outbox (queue, type, payload) select ?, 't', 'x' from generate_series(1, ?)",
        queue,
        messages);
    try (Connection other = database.plain().getConnection();
        Statement statement = other.createStatement()) {
      statement.execute("begin isolation level repeatable read");
      statement.execute("select count(*) from pg_class");
      await().until(() -> insertedRows() >= inserted + messages); // and the pages with them
      long before = claimIndexPages();
      engine.start(engine.subscriber(queue).batchSize(500).on("t", (payload, delivery) -> {}));
      await()
          .atMost(Duration.ofMinutes(1))
          .untilAsserted(() -> assertThat(engine.events.acked).hasValue(messages));
      engine.close(); // connections that end tell their statistics
      await().until(() -> connections() == 1);
      double pages = claimIndexPages() - before;
      assertThat(pages / messages).as("index pages a message").isBetween(0.001, 0.1);
    }
  }

  private long insertedRows() {
    return database.one(
        Long.class, "select n_tup_ins from pg_stat_user_tables where relname = 'outbox'");
  }

  private long claimIndexPages() {
    return database.one(
        Long.class,
        "select idx_blks_hit + idx_blks_read from pg_statio_user_indexes"
            + " where indexrelname = 'outbox_claim_idx'");
  }

  /** Those of others than who asks. */
  private long connections() {
    return database.one(
        Long.class,
        "select count(*) from pg_stat_activity"
            + " where datname = current_database() and pid <> pg_backend_pid()"
            + " and backend_type = 'client backend'");
  }

  @Test
  void sixtyFourWorkersTakeTwoPooledConnectionsAndOneForListen() {
    CountingDataSource counting = new CountingDataSource(engine.pool);
    AtomicInteger running = new AtomicInteger();
    AtomicInteger mostRunning = new AtomicInteger();
    CountDownLatch allRun = new CountDownLatch(64);
    OutboxSubscriber subscriber =
        engine
            .subscriber(queue)
            .store(PostgresOutbox.on(counting, database.table()).store())
            .listen(listen())
            .workers(64)
            .lease(Duration.ofMillis(500)) // renewed meanwhile, too
            .on(
                "t",
                (payload, delivery) -> {
                  mostRunning.accumulateAndGet(running.incrementAndGet(), Math::max);
                  allRun.countDown();
                  allRun.await(10, TimeUnit.SECONDS);
                  long until = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(20);
                  while (System.nanoTime() < until) {
                    LockSupport.parkNanos(until - System.nanoTime());
                  }
                  running.decrementAndGet();
                })
            .build();
    long before = listeners();
    subscriber.start();
    try {
      for (int i = 0; i < 20; i++) {
        engine.publish(queue, "t", 250);
      }
      await()
          .atMost(Duration.ofMinutes(1))
          .untilAsserted(() -> assertThat(engine.events.acked).hasValue(5_000));
      assertThat(mostRunning).hasValue(64);
      assertThat(listeners() - before).isEqualTo(1);
    } finally {
      subscriber.stop();
    }
    assertThat(counting.mostLent()).isBetween(1, 2);
  }

  private long listeners() {
    return database.one(
        Long.class,
        "select count(*) from pg_stat_activity where datname = current_database()"
            + " and application_name = 'outbox4j-listen'");
  }

  @Test
  void idleSubscriberRunsOneStatementPerPoll() {
    CountingDataSource counting = new CountingDataSource(engine.pool);
    OutboxSubscriber subscriber =
        engine
            .subscriber(queue)
            .store(PostgresOutbox.on(counting, database.table()).store())
            .poll(Duration.ofMillis(100), Duration.ofMillis(100))
            .on("t", (payload, delivery) -> {})
            .build();
    subscriber.start();
    long begun = System.nanoTime();
    try {
      await() // what counts events may be a moment behind
          .untilAsserted(
              () -> {
                long claims = engine.events.claims.get();
                assertThat(claims).isGreaterThan(10);
                assertThat(counting.executions()).isEqualTo(claims);
                long polls = Duration.ofNanos(System.nanoTime() - begun).toMillis() / 80 + 2;
                assertThat(claims).isLessThanOrEqualTo(polls);
              });
    } finally {
      subscriber.stop();
    }
  }

  @Test
  void delayedMessageIsHandledWhenDueAndNotBefore() {
    AtomicLong handledAt = new AtomicLong();
    OutboxSubscriber subscriber =
        engine.start(
            engine
                .subscriber(queue)
                .poll(Duration.ofMillis(10), Duration.ofSeconds(10))
                .listen(listen())
                .on(
                    "t",
                    (payload, delivery) -> {
                      handledAt.set(System.nanoTime());
                    }));
    await()
        .until(() -> subscriber.health().listener() == dev.outbox4j.SubscriberHealth.Listener.UP);
    awaitAsleep();
    long published = System.nanoTime();
    engine.inTransaction(
        List.of(
            OutboxMessage.to(queue)
                .type("t")
                .body("x")
                .deliverIn(Duration.ofMillis(1_500))
                .build()));
    await().pollInterval(Duration.ofMillis(5)).until(() -> handledAt.get() != 0);
    assertThat(Duration.ofNanos(handledAt.get() - published))
        .isBetween(Duration.ofMillis(1_500), Duration.ofMillis(2_500));
  }

  private void awaitAsleep() {
    await().until(this::isAsleep);
  }

  /** Publishers notify it then. */
  private boolean isAsleep() {
    return database.one(
            Long.class,
            "select count(*) from outbox_sleepers where queue = ? and wake_at > now()",
            queue)
        > 0;
  }

  @Test
  void messagesToASleepingSubscriberDoNotWaitForThePoll() {
    Map<String, Long> handled = new ConcurrentHashMap<>();
    OutboxSubscriber subscriber =
        engine.start(
            engine
                .subscriber(queue)
                .poll(Duration.ofMillis(10), Duration.ofSeconds(30))
                .lease(Duration.ofSeconds(60))
                .listen(listen())
                .on(
                    "t",
                    String.class,
                    (text, delivery) -> {
                      handled.put(text, System.nanoTime());
                    }));
    for (int i = 0; i < 5; i++) {
      awaitAsleep();
      await().until(() -> EngineFixture.sleepsFor(subscriber, Duration.ofSeconds(1)));
      String body = "m" + i;
      long published = System.nanoTime();
      engine.publish(queue, "t", body);
      await()
          .pollInterval(Duration.ofMillis(1))
          .atMost(Duration.ofSeconds(5))
          .until(() -> handled.containsKey(body));
      assertThat(Duration.ofNanos(handled.get(body) - published)).isLessThan(Duration.ofSeconds(2));
    }
  }

  @Test
  void messageOfATransactionThatIsOlderThanTheSleepDoesNotWaitForThePoll() throws Exception {
    AtomicLong handledAt = new AtomicLong();
    try (Connection connection = database.plain().getConnection()) {
      connection.setAutoCommit(false);
      // nobody sleeps yet, so nothing will be sent at its commit
      engine.publisher.publish(connection, OutboxMessage.to(queue).type("t").body("x").build());
      engine.start(
          engine
              .subscriber(queue)
              .poll(Duration.ofSeconds(60), Duration.ofSeconds(60))
              .listen(listen())
              .on(
                  "t",
                  (payload, delivery) -> {
                    handledAt.set(System.nanoTime());
                  }));
      awaitAsleep();
      // a sleeper that did not mind the open transaction would not look again this often
      int looked = engine.events.claims.get();
      await().until(() -> engine.events.claims.get() >= looked + 20);
      assertThat(handledAt).hasValue(0);
      connection.commit();
    }
    await().atMost(Duration.ofSeconds(5)).until(() -> handledAt.get() != 0);
  }

  @Test
  void busySubscriberIsNotAmongTheSleepers() {
    AtomicLong busy = new AtomicLong();
    engine.start(
        engine
            .subscriber(queue)
            .poll(Duration.ofMillis(10), Duration.ofSeconds(30))
            .lease(Duration.ofMinutes(10)) // its announcement does not run out meanwhile
            .batchSize(100) // so that it is busy for many claims
            .listen(listen())
            .on(
                "busy",
                (payload, delivery) -> {
                  busy.incrementAndGet();
                }));
    awaitAsleep();
    AtomicBoolean on = new AtomicBoolean(true);
    CompletableFuture<Void> crowd = CompletableFuture.runAsync(() -> keepBusy(on, busy, 2_000));
    try {
      await().until(() -> !isAsleep());
    } finally {
      on.set(false);
      crowd.join();
    }
    awaitAsleep();
  }

  @Test
  void stoppedSubscriberTakesItsNameOffTheSleepers() {
    OutboxSubscriber subscriber =
        engine.start(
            engine
                .subscriber(queue)
                .poll(Duration.ofMillis(10), Duration.ofSeconds(30))
                .listen(listen())
                .on("t", (payload, delivery) -> {}));
    awaitAsleep();
    subscriber.stop();
    assertThat(sleepers()).isZero();
  }

  private long sleepers() {
    return database.one(Long.class, "select count(*) from outbox_sleepers where queue = ?", queue);
  }
}
