package dev.outbox4j.dlq.engine;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.awaitility.Awaitility.await;

import com.zaxxer.hikari.HikariDataSource;
import dev.outbox4j.OutboxException;
import dev.outbox4j.OutboxSubscriber;
import dev.outbox4j.OutboxSubscribers;
import dev.outbox4j.Outcome;
import dev.outbox4j.Payload;
import dev.outbox4j.SubscriberEvents.Phase;
import dev.outbox4j.SubscriberHealth;
import dev.outbox4j.SubscriberState;
import dev.outbox4j.postgres.OutboxTable;
import dev.outbox4j.postgres.PostgresOutbox;
import dev.outbox4j.postgres.testing.PostgresExtension;
import dev.outbox4j.postgres.testing.TcpProxy;
import dev.outbox4j.postgres.testing.TestDatabase;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.postgresql.ds.PGSimpleDataSource;

@ExtendWith(PostgresExtension.class)
class LifecycleIT {
  private static final AtomicInteger QUEUES = new AtomicInteger();

  private final TestDatabase database;
  private EngineFixture engine;
  private String queue;

  LifecycleIT(TestDatabase database) {
    this.database = database;
  }

  @BeforeEach
  void setUp() {
    engine = new EngineFixture(database, 3);
    queue = "lifecycle-" + QUEUES.incrementAndGet();
  }

  @AfterEach
  void tearDown() {
    engine.close();
  }

  @Test
  void aHandlerLearnsThatItsSubscriberIsStopping() throws Exception {
    CountDownLatch running = new CountDownLatch(1);
    AtomicBoolean stoppingBefore = new AtomicBoolean(true);
    OutboxSubscriber subscriber =
        engine.start(
            engine
                .subscriber(queue)
                .on(
                    "t",
                    (payload, delivery) -> {
                      stoppingBefore.set(delivery.stopping());
                      running.countDown();
                      await().until(delivery::stopping);
                      return Outcome.reschedule(Duration.ZERO);
                    }));
    engine.publish(queue, "t", 1);
    running.await();
    assertThat(stoppingBefore).isFalse();

    CompletableFuture.runAsync(subscriber::stop).get(4, TimeUnit.SECONDS); // the timeout is 5 s

    assertThat(engine.rows(queue)).isEqualTo(1);
    assertThat(leased()).isZero();
  }

  @Test
  void aHandlerLearnsHowLongItsLeaseLasts() {
    Duration lease = Duration.ofSeconds(2);
    List<Duration> left = new CopyOnWriteArrayList<>();
    engine.start(
        engine
            .subscriber(queue)
            .lease(lease)
            .on(
                "t",
                (payload, delivery) -> {
                  left.add(delivery.leaseLeft());
                  await()
                      .until(
                          () -> {
                            left.add(delivery.leaseLeft());
                            return left.size() > 2
                                && left.get(left.size() - 1).compareTo(left.get(left.size() - 2))
                                    > 0;
                          });
                }));
    engine.publish(queue, "t", 1);
    await().until(() -> engine.rows(queue) == 0);
    assertThat(left).allSatisfy(each -> assertThat(each).isBetween(Duration.ofMillis(1), lease));
    assertThat(left.get(1)).as("it shrinks").isLessThan(left.get(0));
  }

  @Test
  void stopFinishesWhatRunsAndGivesBackWhatDoesNot() throws Exception {
    CountDownLatch running = new CountDownLatch(2);
    CountDownLatch go = new CountDownLatch(1);
    AtomicInteger runs = new AtomicInteger();
    OutboxSubscriber subscriber =
        engine.start(
            engine
                .subscriber(queue)
                .workers(2)
                .on(
                    "t",
                    (payload, delivery) -> {
                      runs.incrementAndGet();
                      running.countDown();
                      go.await();
                    }));
    engine.publish(queue, "t", 20);
    running.await();
    CompletableFuture<Void> stopped = CompletableFuture.runAsync(subscriber::stop);
    await().until(() -> subscriber.health().state() == SubscriberState.DRAINING);
    await().untilAsserted(() -> assertThat(leased()).isEqualTo(2));
    go.countDown();
    stopped.get(10, TimeUnit.SECONDS);
    assertThat(runs).hasValue(2);
    assertThat(engine.events.acked).hasValue(2);
    assertThat(engine.rows(queue)).isEqualTo(18);
    assertThat(leased()).isZero();
    assertThat(
            database.one(
                Integer.class, "select max(deliveries_count) from outbox where queue = ?", queue))
        .isZero();
    assertThat(subscriber.health().state()).isEqualTo(SubscriberState.STOPPED);
    assertThat(threadsOf(queue)).isEmpty();
  }

  private long leased() {
    return database.one(
        Long.class,
        "select count(*) from outbox where queue = ? and lease_until is not null",
        queue);
  }

  private static List<String> threadsOf(String subscriber) {
    return Thread.getAllStackTraces().keySet().stream()
        .map(Thread::getName)
        .filter(name -> name.startsWith("outbox-" + subscriber + "-"))
        .filter(name -> !name.contains("-worker-")) // those end by themselves after a while
        .toList();
  }

  @Test
  void stoppedSubscriberStartsAgain() {
    OutboxSubscriber subscriber =
        engine.start(engine.subscriber(queue).on("t", (payload, delivery) -> {}));
    engine.publish(queue, "t", 3);
    await().untilAsserted(() -> assertThat(engine.events.acked).hasValue(3));
    subscriber.stop();
    engine.publish(queue, "t", 3);
    assertThat(engine.rows(queue)).isEqualTo(3);
    subscriber.start();
    await().untilAsserted(() -> assertThat(engine.events.acked).hasValue(6));
    subscriber.stop();
    subscriber.stop();
    assertThat(subscriber.health().state()).isEqualTo(SubscriberState.STOPPED);
  }

  @Test
  void drainThatTimesOutLeavesRowsToTheirLeaseAndSaysSo() throws Exception {
    CountDownLatch running = new CountDownLatch(1);
    AtomicBoolean interrupted = new AtomicBoolean();
    CountDownLatch never = new CountDownLatch(1);
    OutboxSubscriber subscriber =
        engine.start(
            engine
                .subscriber(queue)
                .gracefulTimeout(Duration.ofMillis(200))
                .on(
                    "t",
                    (payload, delivery) -> {
                      running.countDown();
                      try {
                        never.await();
                      } catch (InterruptedException e) {
                        interrupted.set(true);
                        throw e;
                      }
                    }));
    engine.publish(queue, "t", 1);
    running.await();
    subscriber.stop();
    assertThat(engine.events.drainTimeouts).hasValue(1);
    await().untilTrue(interrupted);
    assertThat(leased()).isEqualTo(1);
    assertThat(engine.events.retried).isEmpty();
  }

  @Test
  void stopIsBoundedInABlackHoledNetwork() throws Exception {
    CountDownLatch running = new CountDownLatch(1);
    CountDownLatch finish = new CountDownLatch(1);
    PGSimpleDataSource source = database.plain();
    try (TcpProxy network = new TcpProxy(source.getServerNames()[0], source.getPortNumbers()[0]);
        HikariDataSource pool = new HikariDataSource()) {
      source.setServerNames(new String[] {network.host()});
      source.setPortNumbers(new int[] {network.port()});
      pool.setDataSource(source); // its connectionTimeout is 30 s, the store's networkTimeout 15 s
      pool.setMaximumPoolSize(2);
      OutboxSubscriber subscriber =
          engine.start(
              engine
                  .subscriber(queue)
                  .store(PostgresOutbox.on(pool, database.table()).store())
                  .workers(1)
                  .gracefulTimeout(Duration.ofMillis(500))
                  .on(
                      "t",
                      (payload, delivery) -> {
                        running.countDown();
                        finish.await();
                      }));
      engine.publish(queue, "t", 5);
      running.await();
      network.blackhole();
      finish.countDown();
      long begun = System.nanoTime();
      CompletableFuture.runAsync(subscriber::stop).get(60, TimeUnit.SECONDS);
      assertThat(Duration.ofNanos(System.nanoTime() - begun)).isLessThan(Duration.ofMillis(5_500));
      network.cut(); // or the pool would wait for its connections to close
    }
    assertThat(engine.events.drainTimeouts).hasValue(1);
    assertThat(engine.rows(queue)).isEqualTo(5);
  }

  @Test
  void claimsGoOnWithFewConnectionsAndManySlowHandlers() {
    Semaphore handlers = new Semaphore(0);
    AtomicInteger running = new AtomicInteger();
    engine.start(
        engine
            .subscriber(queue)
            .workers(64)
            .on(
                "t",
                (payload, delivery) -> {
                  running.incrementAndGet();
                  handlers.tryAcquire(1, TimeUnit.SECONDS);
                }));
    engine.publish(queue, "t", 256);
    await().untilAsserted(() -> assertThat(running.get()).isGreaterThanOrEqualTo(64));
    for (int i = 0; i < 20; i++) {
      assertThat(idleInTransaction()).isZero();
    }
    await()
        .atMost(Duration.ofSeconds(20))
        .untilAsserted(() -> assertThat(engine.events.acked).hasValue(256));
    assertThat(idleInTransaction()).isZero();
  }

  private long idleInTransaction() {
    return database.one(
        Long.class,
        "select count(*) from pg_stat_activity where datname = current_database()"
            + " and state like 'idle in transaction%'");
  }

  @Test
  void poolThatIsTooSmallIsRefusedWithTheFormula() {
    HikariDataSource one = database.pool(1);
    OutboxSubscriber subscriber =
        OutboxSubscriber.builder(queue)
            .deleteTerminalFailures()
            .store(PostgresOutbox.on(one, database.table()).store())
            .on("t", (payload, delivery) -> {})
            .build();
    assertThatThrownBy(subscriber::start)
        .isInstanceOf(OutboxException.class)
        .hasMessageContaining("1 connection(s)")
        .hasMessageContaining("each needs 2");
    assertThat(subscriber.health().state()).isEqualTo(SubscriberState.NEW);
  }

  @Test
  void poolThatIsTooSmallForAllIsRefusedForTheGroup() {
    OutboxSubscribers both =
        OutboxSubscribers.of(
            engine.subscriber(queue + "a").on("t", (payload, delivery) -> {}).build(),
            engine.subscriber(queue + "b").on("t", (payload, delivery) -> {}).build());
    assertThatThrownBy(both::start)
        .isInstanceOf(OutboxException.class)
        .hasMessageContaining("2 subscriber(s)")
        .hasMessageContaining("give the pool 4");
    assertThat(both.health()).extracting(SubscriberHealth::state).containsOnly(SubscriberState.NEW);
  }

  @Test
  void groupStartsAndStopsTogether() {
    HikariDataSource four = database.pool(4);
    OutboxSubscriber a = subscriberOn(four, queue + "a");
    OutboxSubscriber b = subscriberOn(four, queue + "b");
    try (OutboxSubscribers both = OutboxSubscribers.of(a, b)) {
      both.start();
      engine.publish(queue + "a", "t", 2);
      engine.publish(queue + "b", "t", 2);
      await().untilAsserted(() -> assertThat(engine.events.acked).hasValue(4));
    }
    assertThat(a.health().state()).isEqualTo(SubscriberState.STOPPED);
    assertThat(b.health().state()).isEqualTo(SubscriberState.STOPPED);
  }

  private OutboxSubscriber subscriberOn(HikariDataSource pool, String queueName) {
    return OutboxSubscriber.builder(queueName)
        .deleteTerminalFailures()
        .store(PostgresOutbox.on(pool, database.table()).store())
        .events(engine.events)
        .on("t", (payload, delivery) -> {})
        .build();
  }

  @Test
  void missingTableIsNamedAndTheSubscriberRecoversOnceItIsThere() {
    OutboxSubscriber subscriber =
        engine.start(
            OutboxSubscriber.builder(queue)
                .deleteTerminalFailures()
                .store(PostgresOutbox.on(engine.pool, OutboxTable.named("late_outbox")).store())
                .events(engine.events)
                .on("t", (payload, delivery) -> {}));
    await()
        .untilAsserted(
            () -> {
              assertThat(subscriber.health().failing()).isTrue();
              assertThat(subscriber.health().lastFailure())
                  .get()
                  .asString()
                  .contains("late_outbox");
            });
    assertThat(subscriber.health().healthy()).isFalse();
    dev.outbox4j.migrations.OutboxMigrations.of("public", "late_outbox").migrate(database.plain());
    await()
        .untilAsserted(
            () -> {
              assertThat(subscriber.health().failing()).isFalse();
              assertThat(subscriber.health().lastClaimAt()).isPresent();
            });
    database.update("insert into late_outbox (queue, type, payload) values (?, 't', 'x')", queue);
    await().untilAsserted(() -> assertThat(engine.events.acked).hasValue(1));
  }

  @Test
  void slowHandlerKeepsItsLeaseByRenewal() {
    AtomicInteger runs = new AtomicInteger();
    CountDownLatch never = new CountDownLatch(1);
    for (String name : List.of("one", "two")) {
      engine.start(
          engine
              .subscriber(queue)
              .name(queue + name)
              .lease(Duration.ofSeconds(2))
              .on(
                  "t",
                  (payload, delivery) -> {
                    runs.incrementAndGet();
                    never.await(5, TimeUnit.SECONDS);
                  }));
    }
    engine.publish(queue, "t", 1);
    await()
        .atMost(Duration.ofSeconds(20))
        .untilAsserted(() -> assertThat(engine.events.acked).hasValue(1));
    assertThat(runs).hasValue(1);
    assertThat(engine.events.renewed.get()).isGreaterThanOrEqualTo(3);
    assertThat(engine.events.leaseLost).isEmpty();
  }

  @Test
  void handlerIsToldThatItsLeaseIsLost() {
    AtomicBoolean told = new AtomicBoolean();
    engine.start(
        engine
            .subscriber(queue)
            .lease(Duration.ofMillis(400))
            .on(
                "t",
                (payload, delivery) -> {
                  database.update(
                      "update outbox set lease_token = lease_token + 1, lease_until = now() + interval '1 hour'"
                          + " where id = ?",
                      delivery.id());
                  await().until(delivery::leaseLost);
                  told.set(true);
                }));
    engine.publish(queue, "t", 1);
    await().untilTrue(told);
    await()
        .untilAsserted(() -> assertThat(engine.events.leaseLost).contains(Phase.RENEW, Phase.ACK));
    assertThat(engine.rows(queue)).isEqualTo(1);
  }

  @Test
  void handlerThatRunsTooLongIsInterruptedAndRetried() {
    AtomicInteger runs = new AtomicInteger();
    AtomicInteger interrupts = new AtomicInteger();
    CountDownLatch never = new CountDownLatch(1);
    engine.start(
        engine
            .subscriber(queue)
            .workers(1)
            .handlerTimeout(Duration.ofMillis(100))
            .on(
                "t",
                (payload, delivery) -> {
                  if (runs.incrementAndGet() == 1) {
                    try {
                      never.await();
                    } catch (InterruptedException e) {
                      interrupts.incrementAndGet();
                      throw e;
                    }
                  }
                }));
    engine.publish(queue, "t", 1);
    await().untilAsserted(() -> assertThat(engine.events.acked).hasValue(1));
    assertThat(runs).hasValue(2);
    assertThat(interrupts).hasValue(1);
    assertThat(engine.events.handlerTimeouts).hasValue(1);
    assertThat(engine.events.retried).hasSize(1);
  }

  @Test
  void stageThatNeverEndsGivesItsWorkerBackAtTheTimeout() {
    AtomicInteger runs = new AtomicInteger();
    engine.start(
        engine
            .subscriber(queue)
            .workers(1)
            .handlerTimeout(Duration.ofMillis(100))
            .on(
                "t",
                Payload.class,
                (payload, delivery) -> {
                  return runs.incrementAndGet() <= 2
                      ? new CompletableFuture<Void>()
                      : CompletableFuture.completedFuture(null);
                }));
    engine.publish(queue, "t", 1);
    await().untilAsserted(() -> assertThat(engine.events.acked).hasValue(1));
    assertThat(runs).hasValue(3);
  }

  @Test
  void usersExecutorIsUsedAndLeftAlone() {
    ExecutorService own = Executors.newFixedThreadPool(3, task -> new Thread(task, "users-own"));
    try {
      Set<String> threads = ConcurrentHashMap.newKeySet();
      OutboxSubscriber subscriber =
          engine.start(
              engine
                  .subscriber(queue)
                  .executor(own)
                  .on(
                      "t",
                      (payload, delivery) -> {
                        threads.add(Thread.currentThread().getName());
                      }));
      engine.publish(queue, "t", 50);
      await().untilAsserted(() -> assertThat(engine.events.acked).hasValue(50));
      subscriber.stop();
      assertThat(threads).containsExactly("users-own");
      assertThat(own.isShutdown()).isFalse();
    } finally {
      own.shutdownNow();
    }
  }

  @Test
  void executorThatRejectsLosesNothing() {
    AtomicBoolean reject = new AtomicBoolean(true);
    ExecutorService own = Executors.newFixedThreadPool(2);
    try {
      engine.start(
          engine
              .subscriber(queue)
              .executor(
                  task -> {
                    if (reject.get()) {
                      throw new java.util.concurrent.RejectedExecutionException("full");
                    }
                    own.execute(task);
                  })
              .on("t", (payload, delivery) -> {}));
      engine.publish(queue, "t", 10);
      await().untilAsserted(() -> assertThat(leased()).isPositive());
      reject.set(false);
      await().untilAsserted(() -> assertThat(engine.events.acked).hasValue(10));
    } finally {
      own.shutdownNow();
    }
  }

  @Test
  void observersThatThrowDoNotTouchDelivery() {
    engine.start(
        engine.subscriber(queue).events(new ThrowingEvents()).on("t", (payload, delivery) -> {}));
    engine.publish(queue, "t", 100);
    await().untilAsserted(() -> assertThat(engine.events.acked).hasValue(100));
    assertThat(engine.rows(queue)).isZero();
  }

  @Test
  void brokenDeadLettersLoseNothingHoldUpNothingAndRecover() {
    OutboxSubscriber subscriber =
        engine.start(
            engine
                .subscriber(queue)
                .lease(Duration.ofSeconds(1))
                .on(
                    "t",
                    String.class,
                    (text, delivery) -> {
                      if (text.startsWith("m")) {
                        throw new IllegalStateException("poison");
                      }
                    })
                .on("healthy", (payload, delivery) -> {}));
    database.update("alter table outbox_dlq rename to outbox_dlq_away");
    try {
      engine.publish(queue, "t", 20);
      await()
          .untilAsserted(() -> assertThat(subscriber.health().deadLettersWaiting()).isEqualTo(20));
      assertThat(subscriber.health().failing()).isTrue();
      assertThat(subscriber.health().healthy()).isFalse();
      assertThat(subscriber.health().lastFailure()).get().asString().contains("outbox_dlq");
      engine.publish(queue, "healthy", 200);
      await().untilAsserted(() -> assertThat(engine.events.acked).hasValue(200));
      assertThat(engine.rows(queue)).isEqualTo(20);
    } finally {
      database.update("alter table outbox_dlq_away rename to outbox_dlq");
    }
    await().untilAsserted(() -> assertThat(engine.events.deadLettered).hasSize(20));
    await().untilAsserted(() -> assertThat(subscriber.health().healthy()).isTrue());
    assertThat(engine.deadLetters(queue)).isEqualTo(20);
    assertThat(engine.rows(queue)).isZero();
  }

  @Test
  void severalQueuesAreServedInTurn() {
    List<String> queues = new ArrayList<>();
    engine.publish(queue, "t", 300);
    engine.publish(queue + "b", "t", 300);
    engine.publish(queue + "c", "t", 300);
    engine.start(
        engine
            .subscriber(queue)
            .queues(queue + "b", queue + "c")
            .workers(1)
            .batchSize(10)
            .on(
                "t",
                (payload, delivery) -> {
                  synchronized (queues) {
                    queues.add(delivery.queue());
                  }
                }));
    await().untilAsserted(() -> assertThat(engine.events.acked).hasValue(900));
    for (String each : List.of(queue, queue + "b", queue + "c")) {
      assertThat(queues.subList(0, 300).stream().filter(each::equals)).hasSizeBetween(50, 200);
    }
  }
}
