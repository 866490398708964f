package dev.outbox4j.lock;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import dev.outbox4j.migrations.LockMigrations;
import dev.outbox4j.migrations.TimerMigrations;
import dev.outbox4j.postgres.PostgresOutbox;
import dev.outbox4j.postgres.notify.pgjdbc.PgjdbcListen;
import dev.outbox4j.postgres.testing.PostgresExtension;
import dev.outbox4j.postgres.testing.TestDatabase;
import dev.outbox4j.timer.OverlapPolicy;
import dev.outbox4j.timer.RecordedRun;
import dev.outbox4j.timer.RunStatus;
import dev.outbox4j.timer.Schedule;
import dev.outbox4j.timer.Timer;
import dev.outbox4j.timer.TimerControl;
import dev.outbox4j.timer.Timers;
import java.sql.Connection;
import java.sql.ResultSet;
import java.time.Duration;
import java.time.Instant;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;

/** Handlers of timers under a lock. */
@ExtendWith(PostgresExtension.class)
class LockedTimersIT {
  private static final int RUNS = 10;
  private static final Timer ONE = daily("one");
  private static final Timer TWO = daily("two");

  private final TestDatabase database;
  private final PostgresOutbox outbox;
  private final TimerControl control;
  private final Locks locks;
  private Timers timers;

  LockedTimersIT(TestDatabase database) {
    this.database = database;
    this.outbox = PostgresOutbox.on(database.pool(20), database.table());
    this.control = TimerControl.of(outbox, "shop");
    this.locks =
        Locks.builder(PostgresOutbox.on(database.plain(), database.table()), "shop")
            .listen(PgjdbcListen.on(database.plain()))
            .build();
  }

  private static Timer daily(String name) {
    return Timer.of(name, Schedule.every(Duration.ofDays(1))).withoutRetries();
  }

  @BeforeEach
  void setUp() {
    database.migrate(TimerMigrations.of("public", "outbox"), TimerMigrations::migrate);
    database.migrate(LockMigrations.of("public", "outbox"), LockMigrations::migrate);
    database.update("truncate outbox, outbox_dlq, outbox_timer, outbox_timer_run, outbox_lock");
    database.update("create table if not exists counted (n bigint)");
    database.update("truncate counted");
    database.update("insert into counted values (0)");
    locks.start();
  }

  @AfterEach
  void stop() {
    timers.stop();
    locks.stop();
  }

  private Timers.Builder builder() {
    return Timers.builder(outbox, "shop")
        .listen(PgjdbcListen.on(database.plain()))
        .subscriber(settings -> settings.workers(4));
  }

  private void start(Timers.Builder builder) {
    timers = builder.build();
    timers.start();
    await().until(() -> !control.timers().isEmpty());
  }

  /** What is read before it is written is right only if nobody else has written since. */
  private static void increment(Connection connection) throws Exception {
    long read;
    try (ResultSet row = connection.createStatement().executeQuery("select n from counted")) {
      row.next();
      read = row.getLong(1);
    }
    connection.createStatement().executeUpdate("update counted set n = " + (read + 1));
  }

  private void trigger(Timer timer) {
    for (int i = 0; i < RUNS; i++) {
      assertThat(control.trigger(timer.name(), "request " + i)).isTrue();
    }
  }

  private List<RecordedRun> runs() {
    return Stream.of(ONE, TWO)
        .flatMap(timer -> control.history(timer.name(), 100).stream())
        .toList();
  }

  private void awaitSuccesses(int runs) {
    await()
        .atMost(Duration.ofSeconds(60))
        .untilAsserted(
            () ->
                assertThat(runs())
                    .hasSize(runs)
                    .allMatch(run -> run.status() == RunStatus.SUCCEEDED));
  }

  private long counted() {
    return database.one(Long.class, "select n from counted");
  }

  @Test
  void runsOfTwoTimersUnderOneLockNeverRunAtTheSameTime() {
    AtomicInteger running = new AtomicInteger();
    AtomicInteger most = new AtomicInteger();
    LockedTimerHandler handler =
        (run, lock) -> {
          most.accumulateAndGet(running.incrementAndGet(), Math::max);
          assertThat(lock.isHeld()).isTrue();
          try (Connection connection = database.plain().getConnection()) {
            increment(connection);
          }
          running.decrementAndGet();
        };
    SingletonLock lock = locks.lock("ledger");
    start(builder().on(ONE, lock.around(handler)).on(TWO, lock.around(handler)));

    trigger(ONE);
    trigger(TWO);

    awaitSuccesses(2 * RUNS);
    assertThat(most).hasValue(1);
    assertThat(counted()).isEqualTo(2 * RUNS);
  }

  @Test
  void runsInTransactionsUnderOneLockFollowEachOthersCommits() {
    SingletonLock lock = locks.lock("ledger");
    start(
        builder()
            .on(ONE, lock.guarding((run, connection) -> increment(connection)))
            .on(TWO, lock.guarding((run, connection) -> increment(connection))));

    trigger(ONE);
    trigger(TWO);

    awaitSuccesses(2 * RUNS);
    assertThat(counted()).isEqualTo(2 * RUNS);
  }

  @Test
  void aRunThatIsTerminatedWhileItWaitsIsNotHandled() throws Exception {
    HeldLock held = locks.lock("ledger").acquire();
    List<Long> handled = new CopyOnWriteArrayList<>();
    start(
        builder()
            .on(
                ONE.overlap(OverlapPolicy.TERMINATE_OTHER),
                locks.lock("ledger").around((run, own) -> handled.add(run.missed()))));
    aDayGoesBy();
    await().until(() -> runs().size() == 1 && runs().get(0).attempts() == 1);
    database.update("update outbox_timer_run set instant = instant - interval '1 day'");
    aDayGoesBy();
    await()
        .atMost(Duration.ofSeconds(60))
        .until(
            () ->
                runs().stream().anyMatch(run -> run.status() == RunStatus.TERMINATED)
                    && runs().stream().anyMatch(run -> run.attempts() == 1 && isBegun(run)));
    await().until(() -> timers.health().subscriber().running() == 1);
    held.close();

    await()
        .atMost(Duration.ofSeconds(60))
        .until(() -> runs().stream().anyMatch(run -> run.status() == RunStatus.SUCCEEDED));
    assertThat(handled).hasSize(1);
  }

  @Test
  void aRunThatIsAskedToStopWhileItWaitsForItsLockIsToldSoOnceItHasIt() throws Exception {
    HeldLock held = locks.lock("ledger").acquire();
    List<Instant> asked = new CopyOnWriteArrayList<>();
    List<Instant> handled = new CopyOnWriteArrayList<>();
    start(
        builder()
            .on(
                ONE.overlap(OverlapPolicy.CANCEL_OTHER),
                locks
                    .lock("ledger")
                    .around(
                        (run, own) -> {
                          handled.add(run.instant());
                          if (handled.size() == 1) {
                            await().atMost(Duration.ofSeconds(60)).until(run::isCancelled);
                            asked.add(run.instant());
                          }
                        })));
    aDayGoesBy();
    await().until(() -> runs().size() == 1 && runs().get(0).attempts() == 1);
    database.update("update outbox_timer_run set instant = instant - interval '1 day'");
    aDayGoesBy();
    await()
        .atMost(Duration.ofSeconds(60))
        .until(() -> runs().stream().anyMatch(run -> run.cancelled().isPresent()));
    held.close();

    awaitSuccesses(2);
    assertThat(handled).hasSize(2);
    assertThat(asked).containsExactly(handled.get(0));
  }

  private static boolean isBegun(RecordedRun run) {
    return run.status() == RunStatus.BEGUN;
  }

  private void aDayGoesBy() {
    database.list(
        String.class,
        "with gone as (update outbox_timer set due_at = now(),"
            + " decided_up_to = decided_up_to - interval '24 hours' returning 1)"
            + " select pg_notify('outbox_outbox_timer', 'shop')::text from gone");
  }

  @Test
  void aRunComesAgainUntilTheLocksAreStarted() {
    Locks later =
        Locks.builder(PostgresOutbox.on(database.plain(), database.table()), "shop").build();
    AtomicInteger handled = new AtomicInteger();
    start(builder().on(ONE, later.lock("later").around((run, own) -> handled.incrementAndGet())));
    assertThat(control.trigger("one", "now")).isTrue();
    await()
        .atMost(Duration.ofSeconds(60))
        .until(() -> runs().size() == 1 && runs().get(0).attempts() >= 2);
    assertThat(runs()).allMatch(LockedTimersIT::isBegun);

    later.start();
    try {
      awaitSuccesses(1);
      assertThat(handled).hasValue(1);
    } finally {
      later.stop();
    }
  }

  @Test
  void aRunThatWaitsForTooLongComesAgainAndHasNotFailed() throws Exception {
    HeldLock held = locks.lock("ledger").acquire();
    AtomicInteger handled = new AtomicInteger();
    SingletonLock lock = locks.lock("ledger").acquisitionTimeout(Duration.ofMillis(50));
    start(
        builder()
            .on(ONE, lock.around((run, own) -> handled.incrementAndGet()))
            .on(TWO, lock.guarding((run, connection) -> increment(connection))));
    assertThat(control.trigger("one", "now")).isTrue();
    assertThat(control.trigger("two", "now")).isTrue();
    await()
        .atMost(Duration.ofSeconds(60))
        .untilAsserted(() -> assertThat(runs()).hasSize(2).allMatch(run -> run.attempts() >= 2));
    assertThat(runs()).allMatch(run -> run.status() == RunStatus.BEGUN);

    held.close();

    awaitSuccesses(2);
    assertThat(handled).hasValue(1);
    assertThat(counted()).isEqualTo(1);
    assertThat(database.count("outbox_dlq")).isZero();
  }
}
