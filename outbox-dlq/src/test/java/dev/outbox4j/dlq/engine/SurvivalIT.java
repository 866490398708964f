package dev.outbox4j.dlq.engine;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import com.zaxxer.hikari.HikariConfig;
import com.zaxxer.hikari.HikariDataSource;
import dev.outbox4j.Delivery;
import dev.outbox4j.OutboxMessage;
import dev.outbox4j.OutboxSubscriber;
import dev.outbox4j.Payload;
import dev.outbox4j.RetryPolicy;
import dev.outbox4j.SubscriberEvents.Phase;
import dev.outbox4j.SubscriberHealth.Listener;
import dev.outbox4j.SubscriberState;
import dev.outbox4j.postgres.PostgresOutbox;
import dev.outbox4j.postgres.notify.pgjdbc.PgjdbcListen;
import dev.outbox4j.postgres.testing.PostgresExtension;
import dev.outbox4j.postgres.testing.TcpProxy;
import dev.outbox4j.postgres.testing.TestDatabase;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.postgresql.ds.PGSimpleDataSource;

/** What operators rely on when subscribers stop, restart, and lose the network; with its bounds. */
@ExtendWith(PostgresExtension.class)
@Tag("once")
class SurvivalIT {
  private static final AtomicInteger QUEUES = new AtomicInteger();

  /** Longer than any test: a row that has to wait for it fails the test. */
  private static final Duration LONG_LEASE = Duration.ofMinutes(1);

  /** More rows than four subscribers handle between two looks of a test. */
  private static final int BACKLOG = 1_000;

  private final TestDatabase database;
  private final CountDownLatch never = new CountDownLatch(1);
  private EngineFixture engine;
  private TcpProxy network;
  private String queue;

  SurvivalIT(TestDatabase database) {
    this.database = database;
  }

  @BeforeEach
  void setUp() {
    engine = new EngineFixture(database, 10);
    network = new TcpProxy(database.server().host(), database.server().port());
    queue = "survival-" + QUEUES.incrementAndGet();
  }

  @AfterEach
  void tearDown() {
    engine.close();
    network.close();
  }

  @Test
  void rowsOfAStoppedSubscriberAreHandledElsewhereAtOnce() throws Exception {
    CountDownLatch running = new CountDownLatch(1);
    CountDownLatch go = new CountDownLatch(1);
    OutboxSubscriber first =
        engine.start(
            named("first")
                .workers(1)
                .on("quick", (payload, delivery) -> {}) // so that it holds rows ready
                .on(
                    "t",
                    (payload, delivery) -> {
                      running.countDown();
                      go.await();
                    }));
    List<OutboxMessage> messages = new ArrayList<>();
    for (int i = 0; i < 2_030; i++) {
      messages.add(OutboxMessage.to(queue).type(i < 2_000 ? "quick" : "t").body("x").build());
    }
    engine.inTransaction(messages);
    running.await();
    await().until(() -> engine.rows(queue) == 30);
    await().untilAsserted(() -> assertThat(leased()).isGreaterThan(1));
    Map<Long, Long> elsewhere = new ConcurrentHashMap<>();
    OutboxSubscriber second =
        engine.start(
            named("second")
                .listen(PgjdbcListen.on(database.plain()))
                .poll(Duration.ofMillis(10), Duration.ofSeconds(50)) // so that no poll helps
                .on(
                    "t",
                    (payload, delivery) -> {
                      elsewhere.put(delivery.id(), System.nanoTime());
                    }));
    await().until(() -> second.health().listener() == Listener.UP);
    await().until(() -> elsewhere.size() + leased() == 30 && engine.rows(queue) == leased());

    CompletableFuture<Void> stopped = CompletableFuture.runAsync(first::stop);
    await().until(() -> first.health().state() == SubscriberState.DRAINING);
    long began = System.nanoTime();
    await().atMost(Duration.ofSeconds(5)).until(() -> elsewhere.size() == 29);
    assertThat(Duration.ofNanos(System.nanoTime() - began)).isLessThan(Duration.ofSeconds(2));
    go.countDown();
    stopped.get(10, TimeUnit.SECONDS);
    await().untilAsserted(() -> assertThat(engine.rows(queue)).isZero());
    await().untilAsserted(() -> assertThat(engine.events.acked).hasValue(2_030));
  }

  @Test
  void aRetryIsHandledOnTimeByASleeperThoughItsOwnerHasStopped() throws Exception {
    Duration delay = Duration.ofSeconds(6);
    CountDownLatch running = new CountDownLatch(1);
    CountDownLatch go = new CountDownLatch(1);
    OutboxSubscriber first =
        engine.start(
            named("first")
                .retry(RetryPolicy.constant(delay))
                .on(
                    "t",
                    (Payload payload, Delivery delivery) -> {
                      running.countDown();
                      go.await();
                      throw new IllegalStateException("not now");
                    }));
    long id = engine.publish(queue, "t", "x");
    running.await();
    CountDownLatch elsewhere = new CountDownLatch(1);
    OutboxSubscriber second =
        engine.start(
            named("second")
                .listen(PgjdbcListen.on(database.plain()))
                .poll(Duration.ofSeconds(30), Duration.ofSeconds(50)) // so that no poll helps
                .on(
                    "t",
                    (payload, delivery) -> {
                      elsewhere.countDown();
                    }));
    await().until(() -> EngineFixture.sleepsFor(second, Duration.ofMillis(500)));
    go.countDown();
    await().until(() -> engine.column(Integer.class, "attempts_count", id) == 1);
    first.stop();
    assertThat(elsewhere.getCount()).isEqualTo(1);
    assertThat(elsewhere.await(delay.toMillis() + 1_500, TimeUnit.MILLISECONDS)).isTrue();
  }

  @Test
  void aRollingRestartMakesNoMessageWaitAndNoneComeTwice() throws Exception {
    Map<String, Integer> handled = new ConcurrentHashMap<>();
    OutboxSubscriber[] subscribers = new OutboxSubscriber[4];
    for (int i = 0; i < subscribers.length; i++) {
      subscribers[i] = engine.start(counting(i, handled));
    }
    AtomicBoolean restarting = new AtomicBoolean(true);
    AtomicInteger published = new AtomicInteger();
    CompletableFuture<Void> load =
        CompletableFuture.runAsync(
            () -> {
              while (restarting.get()) {
                published.addAndGet(engine.publish(queue, "t", BACKLOG).size());
                await()
                    .pollInterval(Duration.ofMillis(5))
                    .atMost(Duration.ofMinutes(1))
                    .until(() -> published.get() - handled.size() < BACKLOG || !restarting.get());
              }
            });
    for (int round = 0; round < 2; round++) {
      for (int i = 0; i < subscribers.length; i++) {
        int before = handled.size();
        String name = "again-" + i;
        await().until(() -> heldBy(name) > 0);
        subscribers[i].stop();
        assertThat(heldBy(name)).isZero();
        subscribers[i] = engine.start(counting(i, handled));
        await().until(() -> handled.size() > before);
      }
    }
    restarting.set(false);
    load.get(60, TimeUnit.SECONDS);
    // far less than a lease: whatever a stopped one held was given back
    await()
        .atMost(Duration.ofSeconds(20))
        .untilAsserted(() -> assertThat(engine.events.acked).hasValue(published.get()));
    assertThat(handled).hasSize(published.get());
    assertThat(handled.values()).containsOnly(1);
    assertThat(engine.events.leaseLost).isEmpty();
  }

  private OutboxSubscriber.Builder counting(int number, Map<String, Integer> handled) {
    return engine
        .subscriber(queue)
        .name("again-" + number)
        .lease(LONG_LEASE)
        .on(
            "t",
            (payload, delivery) -> {
              handled.merge(Long.toString(delivery.id()), 1, Integer::sum);
              never.await(5, TimeUnit.MILLISECONDS); // so that a backlog lasts
            });
  }

  private long heldBy(String subscriber) {
    return database.one(
        Long.class, "select count(*) from outbox where leased_by like ?", subscriber + "/%");
  }

  @Test
  void aStopLetsHundredHandlersFinishAndStartsNoOther() throws Exception {
    CountDownLatch running = new CountDownLatch(100);
    AtomicInteger started = new AtomicInteger();
    OutboxSubscriber subscriber =
        engine.start(
            named("busy")
                .workers(100)
                .gracefulTimeout(Duration.ofSeconds(20))
                .on(
                    "t",
                    (payload, delivery) -> {
                      started.incrementAndGet();
                      running.countDown();
                      never.await(1, TimeUnit.SECONDS);
                    }));
    engine.publish(queue, "t", 150);
    running.await();
    long began = System.nanoTime();
    subscriber.stop();
    Duration took = Duration.ofNanos(System.nanoTime() - began);
    assertThat(started).hasValue(100);
    assertThat(engine.events.acked).hasValue(100);
    assertThat(took).isLessThan(Duration.ofSeconds(8));
    assertThat(engine.rows(queue)).isEqualTo(50);
    assertThat(leased()).isZero();
    assertThat(engine.events.drainTimeouts).hasValue(0);
  }

  @Test
  void aHandlerWhoseLeaseCannotBeRenewedIsToldAndItsAckChangesNothing() throws Exception {
    CountDownLatch running = new CountDownLatch(1);
    CountDownLatch told = new CountDownLatch(1);
    CountDownLatch go = new CountDownLatch(1);
    AtomicInteger elsewhere = new AtomicInteger();
    RecordedEvents cutOff = new RecordedEvents();
    HikariDataSource pool = proxiedPool();
    OutboxSubscriber.Builder first =
        OutboxSubscriber.builder(queue)
            .deleteTerminalFailures()
            .name(queue + "-cut-off")
            .store(PostgresOutbox.on(pool, database.table()).store(Duration.ofSeconds(1)))
            .lease(Duration.ofMillis(800))
            .events(cutOff)
            .on(
                "t",
                (payload, delivery) -> {
                  running.countDown();
                  await().atMost(Duration.ofSeconds(10)).until(delivery::leaseLost);
                  told.countDown();
                  go.await();
                });
    OutboxSubscriber subscriber = engine.start(first);
    long id = engine.publish(queue, "t", "x");
    running.await();
    network.blackhole();
    CountDownLatch finish = new CountDownLatch(1);
    engine.start(
        named("second")
            .on(
                "t",
                (payload, delivery) -> {
                  elsewhere.incrementAndGet();
                  finish.await();
                }));
    assertThat(told.await(10, TimeUnit.SECONDS)).isTrue();
    await().untilAsserted(() -> assertThat(elsewhere).hasValue(1));

    network.resume();
    await().until(() -> !subscriber.health().failing());
    go.countDown();
    await().untilAsserted(() -> assertThat(cutOff.leaseLost).contains(Phase.ACK));
    assertThat(cutOff.acked).hasValue(0);
    assertThat(engine.column(String.class, "leased_by", id)).startsWith("second");
    finish.countDown();
    await().untilAsserted(() -> assertThat(engine.events.acked).hasValue(1));
    assertThat(engine.rows(queue)).isZero();
    assertThat(elsewhere).hasValue(1);
    subscriber.stop();
    pool.close();
  }

  @Test
  void aSilentListenConnectionIsFoundAndMessagesGoOnAtThePollInterval() {
    Duration poll = Duration.ofMillis(500);
    Map<Long, Long> handledAt = new ConcurrentHashMap<>();
    PGSimpleDataSource listen = database.plain();
    listen.setServerNames(new String[] {network.host()});
    listen.setPortNumbers(new int[] {network.port()});
    OutboxSubscriber subscriber =
        engine.start(
            engine
                .subscriber(queue)
                .listen(PgjdbcListen.on(listen)) // probes as it does unless told otherwise
                .poll(Duration.ofMillis(10), poll)
                .on(
                    "t",
                    (payload, delivery) -> {
                      handledAt.put(delivery.id(), System.nanoTime());
                    }));
    await().until(() -> subscriber.health().listener() == Listener.UP);
    network.blackhole();
    long silent = System.nanoTime();
    while (subscriber.health().listener() == Listener.UP) {
      long published = System.nanoTime();
      long id = engine.publish(queue, "t", "x");
      await().pollInterval(Duration.ofMillis(20)).until(() -> handledAt.containsKey(id));
      assertThat(Duration.ofNanos(handledAt.get(id) - published))
          .isLessThan(poll.plusSeconds(1)); // the rest is the machine's
      assertThat(Duration.ofNanos(System.nanoTime() - silent)).isLessThan(Duration.ofSeconds(30));
    }
    assertThat(handledAt).isNotEmpty();
    network.resume();
    await()
        .atMost(Duration.ofSeconds(25))
        .until(() -> subscriber.health().listener() == Listener.UP);
  }

  private OutboxSubscriber.Builder named(String name) {
    return engine.subscriber(queue).name(name).lease(LONG_LEASE);
  }

  private HikariDataSource proxiedPool() {
    PGSimpleDataSource source = database.plain();
    source.setServerNames(new String[] {network.host()});
    source.setPortNumbers(new int[] {network.port()});
    HikariConfig config = new HikariConfig();
    config.setDataSource(source);
    config.setMaximumPoolSize(3);
    config.setConnectionTimeout(1_000);
    return new HikariDataSource(config);
  }

  private long leased() {
    return database.one(
        Long.class,
        "select count(*) from outbox where queue = ? and lease_until is not null",
        queue);
  }
}
