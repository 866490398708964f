package dev.outbox4j.monitor;

import static dev.outbox4j.monitor.MonitorKit.LONG;
import static dev.outbox4j.monitor.MonitorKit.SOON;
import static dev.outbox4j.monitor.MonitorKit.alert;
import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import dev.outbox4j.postgres.testing.CountingDataSource;
import dev.outbox4j.postgres.testing.PostgresExtension;
import dev.outbox4j.postgres.testing.TestDatabase;
import java.time.Duration;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;
import org.postgresql.ds.PGSimpleDataSource;

/** A monitor whose node, or whose connection, fails at any point: all is said once. */
@ExtendWith(PostgresExtension.class)
class MonitorFaultsIT {
  private static final MonitorType<Json> WATCH = MonitorType.of("watch").every(LONG);
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
}
