package dev.outbox4j.dlq.engine;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.awaitility.Awaitility.await;

import com.zaxxer.hikari.HikariConfig;
import com.zaxxer.hikari.HikariDataSource;
import dev.outbox4j.Batch;
import dev.outbox4j.OutboxSubscriber;
import dev.outbox4j.RetryPolicy;
import dev.outbox4j.migrations.SlotMigrations;
import dev.outbox4j.postgres.PostgresOutbox;
import dev.outbox4j.postgres.notify.pgjdbc.PgjdbcListen;
import dev.outbox4j.postgres.testing.CountingDataSource;
import dev.outbox4j.postgres.testing.PostgresExtension;
import dev.outbox4j.postgres.testing.TcpProxy;
import dev.outbox4j.postgres.testing.TestDatabase;
import java.time.Duration;
import java.time.Instant;
import java.time.OffsetDateTime;
import java.util.Comparator;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.postgresql.ds.PGSimpleDataSource;

/** No more messages of a queue are handled at once than its limit, in all processes together. */
@ExtendWith(PostgresExtension.class)
class ConcurrencyLimitsIT {
  private static final AtomicInteger QUEUES = new AtomicInteger();
  private static final Duration SOON = Duration.ofSeconds(60);

  private final TestDatabase database;
  private final AtomicInteger running = new AtomicInteger();
  private final AtomicInteger most = new AtomicInteger();
  private final AtomicInteger done = new AtomicInteger();
  private final CountDownLatch mayEnd = new CountDownLatch(1);
  private EngineFixture engine;
  private String queue;

  ConcurrencyLimitsIT(TestDatabase database) {
    this.database = database;
  }

  @BeforeEach
  void setUp() {
    database.migrate(SlotMigrations.of("public", "outbox"), SlotMigrations::migrate);
    engine = new EngineFixture(database, 16);
    queue = "limited-" + QUEUES.incrementAndGet();
  }

  @AfterEach
  void tearDown() {
    mayEnd.countDown();
    engine.close();
    database.update("delete from outbox where queue = ?", queue);
  }

  private OutboxSubscriber.Builder subscriber(String name, int limit) {
    return engine.subscriber(queue).name(name).concurrencyLimit(queue, limit);
  }

  private void begin(int messages) {
    most.accumulateAndGet(running.addAndGet(messages), Math::max);
  }

  private void end(int messages) {
    running.addAndGet(-messages);
    done.addAndGet(messages);
  }

  private OutboxSubscriber.Builder working(OutboxSubscriber.Builder builder) {
    return working(builder, new CyclicBarrier(1));
  }

  /** Handles messages that end together. */
  private OutboxSubscriber.Builder working(
      OutboxSubscriber.Builder builder, CyclicBarrier together) {
    return builder.otherwise(
        (payload, delivery) -> {
          begin(1);
          together.await(SOON.toSeconds(), TimeUnit.SECONDS);
          end(1);
        });
  }

  /** Handles messages that do not end before the test lets them. */
  private OutboxSubscriber.Builder hanging(OutboxSubscriber.Builder builder) {
    return builder.otherwise(
        (payload, delivery) -> {
          begin(1);
          mayEnd.await();
          end(1);
        });
  }

  private long leased() {
    return database.one(
        Long.class, "select count(*) from outbox where queue = ? and lease_until > now()", queue);
  }

  private void staysAt(AtomicInteger count, int value) {
    await()
        .during(Duration.ofSeconds(1))
        .atMost(SOON)
        .untilAsserted(() -> assertThat(count).hasValue(value));
  }

  @Test
  void fourSubscribersWithSixtyFourWorkersHandleFiveAtOnceAndNoMore() {
    CyclicBarrier five = new CyclicBarrier(5);
    for (int i = 0; i < 4; i++) {
      engine.start(working(subscriber("s" + i, 5).workers(16), five));
    }
    engine.publish(queue, "t", 600);

    await().atMost(SOON).until(() -> engine.rows(queue) == 0);
    assertThat(done).hasValue(600);
    assertThat(most).hasValue(5);
  }

  /** Looks are 250 ms apart, whatever the poll is, which {@code QueueLimitTest} shows. */
  @Test
  void theFirstLookAfterTheLeasesOfADeadProcessFindsItsShareFree() throws Exception {
    try (TcpProxy network = new TcpProxy(database.server().host(), database.server().port());
        HikariDataSource throughIt = pool(network)) {
      OutboxSubscriber dead =
          engine.start(
              hanging(
                  subscriber("dead", 2)
                      .store(PostgresOutbox.on(throughIt, database.table()).store())
                      .lease(Duration.ofSeconds(3))
                      .gracefulTimeout(Duration.ZERO)));
      engine.publish(queue, "t", 2);
      await().atMost(SOON).until(() -> running.get() == 2);

      List<Instant> looks = new CopyOnWriteArrayList<>();
      CountingDataSource counting = new CountingDataSource(engine.pool);
      counting.beforeEach(
          text -> {
            if (text.contains("for update of s skip locked")) {
              looks.add(Instant.now());
            }
          });
      List<Instant> elsewhere = new CopyOnWriteArrayList<>();
      engine.start(
          subscriber("alive", 2)
              .store(PostgresOutbox.on(counting, database.table()).store())
              .poll(Duration.ofMinutes(1), Duration.ofMinutes(2))
              .otherwise(
                  (payload, delivery) -> {
                    elsewhere.add(leasedAt(delivery.id()));
                  }));
      engine.publish(queue, "t", 10);
      await().atMost(SOON).until(() -> looks.size() > 1);
      network.blackhole();
      await().atMost(SOON).until(this::nobodyRenews);
      Instant end =
          database
              .one(
                  OffsetDateTime.class,
                  "select min(lease_until) from outbox where queue = ?",
                  queue)
              .toInstant();
      assertThat(elsewhere).isEmpty();

      await().atMost(SOON).until(() -> elsewhere.size() == 12);
      Instant first = elsewhere.stream().min(Comparator.naturalOrder()).orElseThrow();
      assertThat(first).isAfter(end);
      assertThat(looks.stream().filter(at -> at.isAfter(end) && at.isBefore(first)).count())
          .as("looks after the end of the leases, up to that which found the slots free")
          .isLessThanOrEqualTo(1);
      network.resume();
      mayEnd.countDown();
      dead.stop();
    }
    await().atMost(SOON).until(() -> engine.rows(queue) == 0);
  }

  private boolean nobodyRenews() {
    return database.one(
        Boolean.class,
        """
        select not exists (select from pg_stat_activity
          where datname = current_database() and pid <> pg_backend_pid() and state = 'active')""");
  }

  private Instant leasedAt(long id) {
    return engine.column(OffsetDateTime.class, "leased_at", id).toInstant();
  }

  private HikariDataSource pool(TcpProxy network) {
    PGSimpleDataSource source = database.plain();
    source.setServerNames(new String[] {network.host()});
    source.setPortNumbers(new int[] {network.port()});
    HikariConfig config = new HikariConfig();
    config.setDataSource(source);
    config.setMaximumPoolSize(4);
    return new HikariDataSource(config);
  }

  @Test
  void whileAProcessHoldsAllSlotsNobodyBeginsAMessage() {
    engine.start(hanging(subscriber("first", 3).workers(8)));
    engine.publish(queue, "t", 3);
    await().atMost(SOON).until(() -> running.get() == 3);
    engine.start(hanging(subscriber("second", 3).workers(8)));
    engine.publish(queue, "t", 20);

    staysAt(running, 3);
    mayEnd.countDown();
    await().atMost(SOON).until(() -> engine.rows(queue) == 0);
    assertThat(most).hasValue(3);
  }

  @Test
  void otherQueuesOfTheSubscriberGoOn() {
    String other = queue + "-other";
    AtomicInteger others = new AtomicInteger();
    engine.start(
        engine
            .subscriber(queue)
            .queues(other)
            .workers(4)
            .concurrencyLimit(queue, 2)
            .otherwise(
                (payload, delivery) -> {
                  if (delivery.queue().equals(other)) {
                    others.incrementAndGet();
                  } else {
                    begin(1);
                    mayEnd.await();
                    end(1);
                  }
                }));
    engine.publish(queue, "t", 20);
    await().atMost(SOON).until(() -> running.get() == 2);

    engine.publish(other, "t", 500);
    await().atMost(SOON).until(() -> others.get() == 500);
    assertThat(running).hasValue(2);
    mayEnd.countDown();
    await().atMost(SOON).until(() -> engine.rows(queue) == 0);
    assertThat(most).hasValue(2);
  }

  @Test
  void aProcessTakesNoSlotForAMessageThatItCannotBegin() {
    engine.start(hanging(subscriber("small", 10).workers(2)));
    engine.publish(queue, "t", 30);
    await().atMost(SOON).until(() -> running.get() == 2);
    staysAt(running, 2);
    assertThat(leased()).isEqualTo(2);

    engine.start(hanging(subscriber("large", 10).workers(20)));
    await().atMost(SOON).until(() -> running.get() == 10);
    assertThat(leased()).isEqualTo(10);
    mayEnd.countDown();
    await().atMost(SOON).until(() -> engine.rows(queue) == 0);
    assertThat(most).hasValue(10);
  }

  @Test
  void aBacklogOfAnotherQueueDoesNotKeepALimitedQueueFromItsTurn() {
    String other = queue + "-other";
    AtomicInteger others = new AtomicInteger();
    engine.start(
        engine
            .subscriber(queue)
            .queues(other)
            .workers(2)
            .concurrencyLimit(queue, 1)
            .otherwise(
                (payload, delivery) -> {
                  if (delivery.queue().equals(other)) {
                    others.incrementAndGet();
                    engine.publish(other, "t", done.get() < 20 ? 1 : 0);
                  } else {
                    begin(1);
                    end(1);
                  }
                }));
    engine.publish(other, "t", 2_000);
    await().atMost(SOON).until(() -> others.get() > 100);
    engine.publish(queue, "t", 20);

    await().atMost(SOON).until(() -> done.get() == 20);
    assertThat(engine.rows(other)).as("the backlog is still there").isPositive();
    assertThat(most).hasValue(1);
    database.update("delete from outbox where queue = ?", other);
  }

  @Test
  void aLimitOfEachProcessHoldsInEachAndLeavesWorkersToOtherQueues() {
    String other = queue + "-other";
    AtomicInteger others = new AtomicInteger();
    for (String name : new String[] {"one", "two"}) {
      engine.start(
          engine
              .subscriber(queue)
              .name(name)
              .queues(other)
              .workers(4)
              .concurrencyLimitPerProcess(queue, 3)
              .otherwise(
                  (payload, delivery) -> {
                    if (delivery.queue().equals(other)) {
                      others.incrementAndGet();
                    } else {
                      begin(1);
                      mayEnd.await();
                      end(1);
                    }
                  }));
    }
    engine.publish(queue, "t", 30);
    await().atMost(SOON).until(() -> running.get() == 6);
    engine.publish(other, "t", 200);
    await().atMost(SOON).until(() -> others.get() == 200);
    staysAt(running, 6);
    assertThat(leased()).isEqualTo(6);

    mayEnd.countDown();
    await().atMost(SOON).until(() -> engine.rows(queue) == 0);
    assertThat(most).hasValue(6);
  }

  @Test
  void theSmallerOfBothLimitsHolds() {
    for (String name : new String[] {"one", "two"}) {
      engine.start(hanging(subscriber(name, 5).workers(8).concurrencyLimitPerProcess(queue, 3)));
    }
    engine.publish(queue, "t", 30);
    await().atMost(SOON).until(() -> running.get() == 5);
    staysAt(running, 5);
    mayEnd.countDown();
    await().atMost(SOON).until(() -> engine.rows(queue) == 0);
    assertThat(most).hasValue(5);
  }

  /** If each waited for a look at the table, 200 would take 50 seconds. */
  @Test
  void theNextBeginsAsSoonAsOneOfTheSameProcessEnds() {
    engine.start(working(subscriber("s", 1).workers(4)));
    engine.publish(queue, "t", 200);

    await().atMost(SOON).until(() -> engine.rows(queue) == 0);
    assertThat(most).hasValue(1);
  }

  @Test
  void theNextBeginsAsSoonAsATransactionalHandlerCommits() {
    PostgresOutbox outbox = PostgresOutbox.on(engine.pool, database.table());
    engine.start(
        subscriber("s", 1)
            .workers(4)
            .on(
                "t",
                String.class,
                outbox.transactional(
                    (text, delivery, connection) -> {
                      begin(1);
                      end(1);
                    })));
    engine.publish(queue, "t", 200);

    await().atMost(SOON).until(() -> engine.rows(queue) == 0);
    assertThat(most).hasValue(1);
    assertThat(done).hasValue(200);
  }

  @Test
  void aMessageThatWaitsForItsRetryTakesNoSlot() {
    AtomicInteger failed = new AtomicInteger();
    engine.start(
        subscriber("s", 1)
            .retry(RetryPolicy.constant(Duration.ofHours(1)).attempts(3))
            .on(
                "fails",
                String.class,
                (text, delivery) -> {
                  if (failed.incrementAndGet() > 0) {
                    throw new IllegalStateException("not now");
                  }
                })
            .otherwise(
                (payload, delivery) -> {
                  begin(1);
                  end(1);
                }));
    engine.publish(queue, "fails", "x");
    await().atMost(SOON).until(() -> failed.get() == 1);
    engine.publish(queue, "t", 20);

    await().atMost(SOON).until(() -> engine.rows(queue) == 1);
    assertThat(done).hasValue(20);
  }

  @Test
  void eachMessageOfABatchCounts() {
    for (String name : new String[] {"one", "two"}) {
      engine.start(
          subscriber(name, 3)
              .workers(8)
              .onBatch(
                  "t",
                  String.class,
                  Batch.of(10).linger(Duration.ofMillis(5)),
                  batch -> {
                    begin(batch.size());
                    end(batch.size());
                  }));
    }
    engine.publish(queue, "t", 100);

    await().atMost(SOON).until(() -> engine.rows(queue) == 0);
    assertThat(done).hasValue(100);
    assertThat(most.get()).isBetween(1, 3);
  }

  @Test
  void slotsThatSomebodyDeletesAreMadeAnew() {
    engine.start(working(subscriber("s", 2)));
    engine.publish(queue, "t", 10);
    await().atMost(SOON).until(() -> engine.rows(queue) == 0);

    database.update("truncate outbox_slots");
    engine.publish(queue, "t", 10);
    await().atMost(SOON).until(() -> engine.rows(queue) == 0);
    assertThat(database.one(Long.class, "select count(*) from outbox_slots where queue = ?", queue))
        .isEqualTo(2);
  }

  @Test
  void anIdleQueueWithALimitIsWokenByANotification() {
    OutboxSubscriber subscriber =
        engine.start(
            working(subscriber("s", 2))
                .poll(Duration.ofMinutes(1), Duration.ofMinutes(2))
                .listen(PgjdbcListen.on(database.plain())));
    engine.publish(queue, "t", 5);
    await().atMost(SOON).until(() -> engine.rows(queue) == 0);
    await().atMost(SOON).until(() -> EngineFixture.sleepsFor(subscriber, Duration.ofSeconds(1)));

    engine.publish(queue, "t", 5);
    await().atMost(SOON).until(() -> engine.rows(queue) == 0);
    assertThat(most.get()).isBetween(1, 2);
  }

  /** What begins after the start of a claim that found no slot must not wait for ever. */
  @Test
  void aQueueWhoseSlotsAreAllTakenElsewhereGoesOnOnceTheyAreFree() {
    OutboxSubscriber first = engine.start(hanging(subscriber("first", 2).workers(2)));
    engine.publish(queue, "t", 2);
    await().atMost(SOON).until(() -> running.get() == 2);
    engine.start(
        working(subscriber("second", 2).workers(4))
            .poll(Duration.ofMinutes(1), Duration.ofMinutes(2))
            .listen(PgjdbcListen.on(database.plain())));
    engine.publish(queue, "t", 10);
    staysAt(running, 2);

    mayEnd.countDown();
    first.stop();
    await().atMost(SOON).until(() -> engine.rows(queue) == 0);
    assertThat(done).hasValue(12);
    assertThat(most).hasValue(2);
  }

  @Test
  void aLimitThatCannotHoldIsRefused() {
    assertThatThrownBy(() -> subscriber("s", 0))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("concurrencyLimit")
        .hasMessageContaining("1 to 1000");
    assertThatThrownBy(() -> working(subscriber("s", 2).concurrencyLimit("x", 1)).build())
        .hasMessageContaining("queue 'x'")
        .hasMessageContaining("queues(...)");
    assertThatThrownBy(() -> engine.subscriber(queue).concurrencyLimitPerProcess(queue, 1_001))
        .hasMessageContaining("concurrencyLimitPerProcess")
        .hasMessageContaining("1 to 1000");
    assertThatThrownBy(
            () -> working(engine.subscriber(queue).concurrencyLimitPerProcess("x", 1)).build())
        .hasMessageContaining("concurrencyLimitPerProcess(...) is set for queue 'x'");
    assertThatThrownBy(() -> working(subscriber("s", 2).ordered()).build())
        .hasMessageContaining("ordered()");
  }
}
