package dev.outbox4j.monitor;

import static dev.outbox4j.monitor.MonitorKit.LONG;
import static dev.outbox4j.monitor.MonitorKit.SOON;
import static dev.outbox4j.monitor.MonitorKit.alert;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowable;
import static org.awaitility.Awaitility.await;

import dev.outbox4j.OutboxStoreException;
import dev.outbox4j.postgres.testing.CountingDataSource;
import dev.outbox4j.postgres.testing.PostgresExtension;
import dev.outbox4j.postgres.testing.TestDatabase;
import java.time.Duration;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;
import org.postgresql.ds.PGSimpleDataSource;

/** A monitor whose node, or whose connection, fails at any point: all is said once. */
@ExtendWith(PostgresExtension.class)
@Tag("once")
class MonitorFaultsIT {
  private static final MonitorType<Json> WATCH = MonitorType.of("watch").every(LONG);
  private static final int MANY = 8;
  private static final String OF_GROUPS = "with held as materialized";
  private static final String NODE = "a node that fails";

  private final TestDatabase database;
  private final MonitorKit outside;
  private MonitorKit kit;

  MonitorFaultsIT(TestDatabase database) {
    this.database = database;
    this.outside = new MonitorKit(database, database.pool(4));
    this.kit = outside;
  }

  @BeforeEach
  void setUp() {
    MonitorKit.migrate(database);
  }

  @AfterEach
  void stop() {
    kit.close();
  }

  /** Before which statement the connections are cut, and before which of them. */
  static Stream<Arguments> points() {
    return Stream.of(
        Arguments.of("cardinality(m.unseen), m.history", 1),
        Arguments.of("cardinality(m.unseen), m.history", 2),
        Arguments.of("set status = 'running'", 1),
        Arguments.of("set iteration = m.iteration + 1", 1),
        Arguments.of("set status = ?, outcome", 1),
        Arguments.of("insert into \"outbox\" as i", 1),
        Arguments.of("insert into \"outbox\" as i", 2),
        Arguments.of("delete from \"public\".\"outbox\" o", 1),
        Arguments.of("set available_at = clock_timestamp() +", 1),
        Arguments.of("commit", 1),
        Arguments.of("commit", 2));
  }

  /** Else one that kills each process that checks it would never be given up. */
  @Test
  void whoDoesNotHaveATypeLeavesItsWakesWithTheDeliveriesOfThoseThatHaveIt() {
    kit.control().start(WATCH, "x", Json.NULL);
    database.update("update outbox set deliveries_count = 3"); // of processes that died
    kit.start(MonitorType.of("another").every(LONG), call -> MonitorResult.done());
    await()
        .atMost(SOON)
        .until(() -> database.one(Long.class, "select lease_token from outbox") >= 3);
    kit.close();
    assertThat(database.one(Integer.class, "select deliveries_count from outbox")).isEqualTo(3);
  }

  private PGSimpleDataSource node() {
    PGSimpleDataSource node = database.plain();
    node.setApplicationName(NODE);
    return node;
  }

  private void cut() {
    database.list(
        Boolean.class,
        "select pg_terminate_backend(pid) from pg_stat_activity where application_name = ?",
        NODE);
  }

  @ParameterizedTest
  @MethodSource("points")
  void nothingIsLostOrSaidTwiceWhereverItsConnectionsAreCut(String text, int nth) {
    CountingDataSource counting = new CountingDataSource(node());
    AtomicInteger left = new AtomicInteger(nth);
    Runnable hit =
        () -> {
          if (left.decrementAndGet() == 0) {
            cut();
          }
        };
    counting.beforeEach(
        sql -> {
          if (sql.contains(text)) {
            hit.run();
          }
        });
    if (text.equals("commit")) {
      counting.beforeCommit(hit);
    }
    kit = new MonitorKit(database, counting);
    outside.control().start(WATCH, "x", Json.NULL);
    kit.start(
        WATCH,
        call ->
            call.iteration() == 1
                ? MonitorResult.again(Duration.ZERO)
                    .withState(Json.of("1"))
                    .withMessages(alert("first"))
                : MonitorResult.done(call.state().orElseThrow(), alert("second")));

    MonitorInstance ended = outside.awaitStatus("x", MonitorStatus.COMPLETED);

    assertThat(left.get()).as("the connections were cut").isNotPositive();
    assertThat(ended.iterations()).isEqualTo(2);
    assertThat(ended.output()).contains(Json.of("1"));
    assertThat(outside.published("alerts")).containsExactly("first", "second");
    await().atMost(SOON).until(() -> outside.wakes() == 0);
    assertThat(outside.history("x"))
        .containsExactly(
            HistoryEntry.Kind.STARTED, HistoryEntry.Kind.CHECKED, HistoryEntry.Kind.COMPLETED);
  }

  @Test
  void nothingIsSaidTwiceIfTheAnswerToACommitIsLost() {
    LostAnswers answers = new LostAnswers();
    kit = new MonitorKit(database, answers.of(database.pool(8)));
    outside.control().start(WATCH, "x", Json.NULL);
    answers.loseNext(2);
    AtomicInteger checks = new AtomicInteger();
    kit.start(
        WATCH,
        call -> {
          checks.incrementAndGet();
          return call.iteration() == 1
              ? MonitorResult.again(Duration.ZERO).withMessages(alert("first"))
              : MonitorResult.done(Json.of("1"), alert("second"));
        });

    MonitorInstance ended = outside.awaitStatus("x", MonitorStatus.COMPLETED);

    assertThat(ended.iterations()).isEqualTo(2);
    assertThat(outside.published("alerts")).containsExactly("first", "second");
    await().atMost(SOON).until(answers::allLost);
    assertThat(checks).hasValue(2);
  }

  /** Before which statement the connections are cut, and before which of them. */
  static Stream<Arguments> pointsOfGroups() {
    return Stream.of(
        Arguments.of(OF_GROUPS, 1),
        Arguments.of(OF_GROUPS, 3),
        Arguments.of("cardinality(m.unseen), m.history", 3));
  }

  @ParameterizedTest
  @MethodSource("pointsOfGroups")
  void checksThatAreCommittedTogetherAreCommittedOnceWhereverTheirConnectionsAreCut(
      String text, int nth) {
    CountingDataSource counting = new CountingDataSource(node());
    AtomicInteger left = new AtomicInteger(nth);
    counting.beforeEach(
        sql -> {
          if (sql.contains(text) && left.decrementAndGet() == 0) {
            cut();
          }
        });
    kit = new MonitorKit(database, counting);
    for (int n = 0; n < MANY; n++) {
      outside.control().start(WATCH, "x" + n, Json.NULL);
    }
    kit.start(WATCH, MonitorFaultsIT::threeChecks);

    assertCheckedThreeTimes();
    assertThat(left.get()).as("the connections were cut").isNotPositive();
  }

  @Test
  void checksThatAreCommittedTogetherAreCommittedOnceIfTheAnswerIsLost() {
    LostAnswers answers = new LostAnswers();
    answers.loseNextOf(OF_GROUPS, 3);
    kit = new MonitorKit(database, answers.of(database.pool(8)));
    for (int n = 0; n < MANY; n++) {
      outside.control().start(WATCH, "x" + n, Json.NULL);
    }
    AtomicInteger checks = new AtomicInteger();
    kit.start(
        WATCH,
        call -> {
          checks.incrementAndGet();
          return threeChecks(call);
        });

    assertCheckedThreeTimes();
    assertThat(answers.allLost()).isTrue();
    assertThat(checks).as("what was committed is not checked again").hasValue(3 * MANY);
  }

  private static MonitorResult threeChecks(MonitorCall<Json> call) {
    return call.iteration() < 3
        ? MonitorResult.again(Duration.ZERO).withState(Json.of("" + call.iteration()))
        : MonitorResult.done(call.state().orElseThrow(), alert(call.id()));
  }

  private void assertCheckedThreeTimes() {
    for (int n = 0; n < MANY; n++) {
      MonitorInstance ended = outside.awaitStatus("x" + n, MonitorStatus.COMPLETED);
      assertThat(ended.iterations()).isEqualTo(3);
      assertThat(ended.output()).contains(Json.of("2"));
      assertThat(outside.history(ended.id()))
          .containsExactly(
              HistoryEntry.Kind.STARTED,
              HistoryEntry.Kind.CHECKED,
              HistoryEntry.Kind.CHECKED,
              HistoryEntry.Kind.COMPLETED);
    }
    assertThat(outside.published("alerts")).hasSize(MANY).doesNotHaveDuplicates();
    await().atMost(SOON).until(() -> outside.wakes() == 0);
  }

  /** As of a node that was frozen for longer than its lease lasts. */
  @Test
  void whatAnAttemptSaysThatLostItsLeaseIsDropped() throws Exception {
    AtomicInteger calls = new AtomicInteger();
    AtomicInteger returned = new AtomicInteger();
    CountDownLatch running = new CountDownLatch(1);
    CountDownLatch go = new CountDownLatch(1);
    kit = new MonitorKit(database, database.pool(8));
    outside.control().start(WATCH, "x", Json.NULL);
    kit.start(
        kit.builder()
            .events(
                new MonitorEvents() {
                  @Override
                  public void checked(
                      String application,
                      MonitorCall<?> call,
                      Duration took,
                      @Nullable Throwable failure) {
                    returned.incrementAndGet();
                  }
                })
            .on(
                WATCH,
                call -> {
                  if (calls.incrementAndGet() > 1) {
                    return MonitorResult.done(Json.of("2"), alert("by the second"));
                  }
                  running.countDown();
                  go.await();
                  return MonitorResult.done(Json.of("1"), alert("by the first"));
                }));
    running.await();
    // another owner has it from here on
    database.update("update outbox set lease_token = lease_token + 1, lease_until = now()");

    outside.awaitStatus("x", MonitorStatus.COMPLETED);
    go.countDown();

    await().atMost(SOON).until(() -> returned.get() == 2);
    kit.close(); // waits for what is in progress
    assertThat(outside.published("alerts")).containsExactly("by the second");
    assertThat(outside.get("x").output()).contains(Json.of("2"));
  }

  /** Its transaction is open then, and the server ends it: nobody waits for it for long. */
  @Test
  void aNodeThatFreezesInItsCommitDoesNotKeepTheInstance() {
    CountDownLatch frozen = new CountDownLatch(1);
    CountDownLatch thaw = new CountDownLatch(1);
    CountingDataSource freezing = new CountingDataSource(database.pool(8));
    freezing.beforeEach(
        sql -> {
          // all of the node stands still
          if (frozen.getCount() == 0 || sql.contains("set available_at = clock_timestamp() +")) {
            frozen.countDown();
            awaitUninterruptibly(thaw);
          }
        });
    kit = new MonitorKit(database, freezing);
    outside.control().start(WATCH, "x", Json.NULL);
    kit.start(WATCH, call -> MonitorResult.again().withMessages(alert("by the frozen one")));
    try {
      awaitUninterruptibly(frozen);
      // another owner has it from here on
      database.update("update outbox set lease_token = lease_token + 1, lease_until = now()");
      MonitorKit second = new MonitorKit(database, database.pool(8));
      try (second) {
        second.start(WATCH, call -> MonitorResult.done(Json.NULL, alert("by the second")));
        await()
            .atMost(Duration.ofSeconds(50)) // the server ends it after five
            .until(() -> outside.get("x").status() == MonitorStatus.COMPLETED);
      }
    } finally {
      thaw.countDown();
    }
    assertThat(outside.published("alerts")).containsExactly("by the second");
  }

  @Test
  void whoFreezesInAVerbDoesNotKeepTheInstance() throws Exception {
    CountDownLatch frozen = new CountDownLatch(1);
    CountDownLatch thaw = new CountDownLatch(1);
    CountingDataSource freezing = new CountingDataSource(database.pool(2));
    freezing.beforeEach(
        sql -> {
          if (sql.contains("set status = ?, updated_at")) { // it has the row by then
            frozen.countDown();
            awaitUninterruptibly(thaw);
          }
        });
    MonitorControl there = new MonitorKit(database, freezing).control();
    outside.control().start(WATCH, "x", Json.NULL);
    AtomicReference<@Nullable Throwable> thrown = new AtomicReference<>();
    Thread suspending =
        new Thread(() -> thrown.set(catchThrowable(() -> there.suspend("x", "reason"))));
    suspending.start();
    try {
      awaitUninterruptibly(frozen);
      await()
          .atMost(Duration.ofSeconds(50)) // the server ends it after five
          .ignoreExceptions() // each waits for two
          .until(() -> outside.control().terminate("x", "reason") == MonitorAnswer.DONE);
    } finally {
      thaw.countDown();
      suspending.join();
    }
    assertThat(thrown.get()).isInstanceOf(OutboxStoreException.class);
    assertThat(outside.get("x").status()).isEqualTo(MonitorStatus.TERMINATED);
  }

  private static void awaitUninterruptibly(CountDownLatch latch) {
    try {
      assertThat(latch.await(1, TimeUnit.MINUTES)).isTrue();
    } catch (InterruptedException e) {
      throw new IllegalStateException(e);
    }
  }

  @Test
  void aNodeThatStopsLeavesItsChecksToOthers() throws Exception {
    CountDownLatch running = new CountDownLatch(1);
    outside.control().start(WATCH, "x", Json.NULL);
    kit = new MonitorKit(database, database.pool(8));
    Monitors stopping =
        kit.start(
            WATCH,
            call -> {
              running.countDown();
              while (!call.isCancelled()) {
                Thread.onSpinWait();
              }
              throw new IllegalStateException("stopped");
            });
    running.await();
    stopping.stop();
    MonitorInstance left = outside.get("x");
    assertThat(left.status()).isEqualTo(MonitorStatus.RUNNING);
    assertThat(left.attempts()).isZero();

    MonitorKit second = new MonitorKit(database, database.pool(8));
    try (second) {
      second.start(WATCH, call -> MonitorResult.done());
      outside.awaitStatus("x", MonitorStatus.COMPLETED);
    }
    assertThat(outside.get("x").iterations()).isEqualTo(1);
    assertThat(outside.wakes()).isZero();
  }

  /** Or another node would end it, and what the check has said would be lost. */
  @Test
  void aNodeSaysThatACheckGoesOnUntilItIsCommitted() {
    MonitorType<Json> brief = WATCH.expiresAfter(Duration.ofSeconds(2));
    CountDownLatch go = new CountDownLatch(1);
    CountingDataSource slow = new CountingDataSource(database.pool(6));
    slow.beforeEach(
        sql -> {
          if (sql.contains("set status = ?, outcome")) {
            awaitUninterruptibly(go);
          }
        });
    kit = new MonitorKit(database, slow);
    kit.start(brief, call -> MonitorResult.done(Json.of("1")));
    outside.control().start(brief, "x", Json.NULL);

    await()
        .atMost(SOON)
        .until(
            () ->
                database.count("outbox_monitor where overtime_at > expires_at + interval '1 s'")
                    == 1);
    go.countDown();

    MonitorInstance ended = outside.awaitStatus("x", MonitorStatus.COMPLETED);
    assertThat(ended.outcome()).contains(MonitorOutcome.CONDITION_MET);
    assertThat(ended.output()).contains(Json.of("1"));
  }
}
