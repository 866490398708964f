package dev.outbox4j.timer.internal;

import static org.assertj.core.api.Assertions.assertThat;

import dev.outbox4j.migrations.TimerMigrations;
import dev.outbox4j.postgres.PostgresOutbox;
import dev.outbox4j.postgres.testing.CountingDataSource;
import dev.outbox4j.postgres.testing.PostgresExtension;
import dev.outbox4j.postgres.testing.ServerCounters;
import dev.outbox4j.postgres.testing.TestDatabase;
import dev.outbox4j.timer.Schedule;
import dev.outbox4j.timer.Timer;
import dev.outbox4j.timer.TimerStatus;
import java.sql.SQLException;
import java.time.Duration;
import java.time.Instant;
import java.time.InstantSource;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.Function;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;

/** What a tick reads, counted by the server, beside 10,000 timers with a history. */
@ExtendWith(PostgresExtension.class)
@Tag("plans")
class TickPlanIT {
  private static final int TIMERS = 10_000;
  private static final Duration A_YEAR = Duration.ofDays(365);

  private final TestDatabase database;

  TickPlanIT(TestDatabase database) {
    this.database = database;
  }

  @Test
  void aTickWalksNoTableAndTakesTheSameStatementsForManyTimersAsForOne() throws SQLException {
    database.migrate(TimerMigrations.of("public", "outbox"), TimerMigrations::migrate);
    List<Timer> timers =
        IntStream.rangeClosed(1, TIMERS)
            .mapToObj(nth -> Timer.of("timer-" + nth, Schedule.every(Duration.ofDays(1))))
            .toList();
    Map<String, Timer> byName =
        timers.stream().collect(Collectors.toMap(Timer::name, Function.identity()));
    try (ServerCounters counters = new ServerCounters(database, "outbox_timer")) {
      CountingDataSource counting = new CountingDataSource(counters.session());
      TimerStore store =
          new TimerStore(
              PostgresOutbox.on(counting, database.table()),
              "shop",
              "timers.shop",
              InstantSource.system());
      store.register(timers, null);
      counters.run(
          "insert into outbox_timer_run (application, name, instant, cause, status, ended_at)"
              + " select application, name, decided_up_to - make_interval(days => n), 'scheduled',"
              + " 'succeeded', now() from outbox_timer, generate_series(1, 10) n");
      counters.run(
          "update outbox_timer set decided_up_to = decided_up_to - interval '1 day', due_at ="
              + " case when name = 'timer-1' then now() when name < 'timer-15' then"
              + " now() + interval '1 hour' else due_at end");
      long scans = scans(counters);
      long before = counting.executions();
      assertThat(store.tick(byName, Set.of(), 500).timers()).isEqualTo(1);
      long one = counting.executions() - before;
      assertThat(one).isEqualTo(4);
      assertThat(scans(counters)).isEqualTo(scans);

      counters.run(
          "update outbox_timer set due_at = now() where due_at < now() + interval '2 hours'");
      scans = scans(counters);
      before = counting.executions();
      assertThat(store.tick(byName, Set.of(), 500).timers()).isGreaterThan(400);
      assertThat(counting.executions() - before).isEqualTo(one);
      assertThat(scans(counters)).isEqualTo(scans);
    }
  }

  /** As after a backfill. */
  @Test
  void manyRunsOfATimerThatWaitAreWalkedOnceAndNotOnceForEach() throws SQLException {
    database.migrate(TimerMigrations.of("public", "outbox"), TimerMigrations::migrate);
    database.update("truncate outbox_timer, outbox_timer_run");
    Timer timer = Timer.of("t", Schedule.every(Duration.ofDays(1)));
    try (ServerCounters counters = new ServerCounters(database, "outbox_timer_run")) {
      TimerStore store =
          new TimerStore(
              PostgresOutbox.on(counters.session(), database.table()),
              "shop",
              "timers.shop",
              InstantSource.system());
      store.register(List.of(timer), null);
      counters.run(
          "insert into outbox_timer_run (application, name, instant, cause, request, status)"
              + " select 'shop', 't', now() - make_interval(hours => n), 'backfill', 'x', 'waiting'"
              + " from generate_series(1, 10000) n");
      long before = counters.reads().pages();
      assertThat(store.tick(Map.of("t", timer), Set.of(), 500).timers()).isEqualTo(1);
      assertThat(counters.reads().pages() - before).isLessThan(400_000);
    }
  }

  @Test
  void theStatusOfATimerThatHasFailedForLongReadsNoHistory() throws SQLException {
    database.migrate(TimerMigrations.of("public", "outbox"), TimerMigrations::migrate);
    database.update("truncate outbox_timer, outbox_timer_run");
    Timer timer = Timer.of("t", Schedule.every(Duration.ofDays(1)));
    try (ServerCounters counters = new ServerCounters(database, "outbox_timer_run")) {
      PostgresOutbox outbox = PostgresOutbox.on(counters.session(), database.table());
      new TimerStore(outbox, "shop", "timers.shop", InstantSource.system())
          .register(List.of(timer), null);
      counters.run(
          "insert into outbox_timer_run (application, name, instant, cause, status, ended_at)"
              + " select 'shop', 't', now() - make_interval(hours => n), 'scheduled',"
              + " case n when 20001 then 'succeeded' else 'failed' end,"
              + " now() - make_interval(hours => n) from generate_series(1, 20001) n");
      long before = counters.reads().pages();
      List<TimerStatus> onRecord = new ControlStore(outbox, "shop").timers();
      long pages = counters.reads().pages() - before;

      assertThat(onRecord.get(0).lastSuccess())
          .hasValueSatisfying(last -> assertThat(last).isBefore(Instant.now().minus(A_YEAR)));
      assertThat(pages).isLessThan(100);
    }
  }

  private static long scans(ServerCounters counters) throws SQLException {
    return counters.reads().sequentialScans() + counters.sequentialScansOf("outbox_timer_run");
  }
}
