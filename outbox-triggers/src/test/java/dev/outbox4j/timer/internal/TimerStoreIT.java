package dev.outbox4j.timer.internal;

import static org.assertj.core.api.Assertions.assertThat;

import dev.outbox4j.OutboxStoreException;
import dev.outbox4j.migrations.TimerMigrations;
import dev.outbox4j.postgres.PostgresOutbox;
import dev.outbox4j.postgres.testing.CountingDataSource;
import dev.outbox4j.postgres.testing.PostgresExtension;
import dev.outbox4j.postgres.testing.TestDatabase;
import dev.outbox4j.timer.CatchUp;
import dev.outbox4j.timer.OverlapPolicy;
import dev.outbox4j.timer.Schedule;
import dev.outbox4j.timer.Timer;
import dev.outbox4j.timer.internal.TimerStore.Tick;
import java.time.Duration;
import java.time.Instant;
import java.time.InstantSource;
import java.time.OffsetDateTime;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Function;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import javax.sql.DataSource;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;

/** Ticks on a real server. Its clock is not waited for: what is stored is put into the past. */
@ExtendWith(PostgresExtension.class)
class TimerStoreIT {
  private static final String QUEUE = "timers";
  private static final Duration A_DAY = Duration.ofDays(1);
  private static final Schedule MINUTELY = Schedule.every(Duration.ofMinutes(1));
  private static final Schedule DAILY = Schedule.every(A_DAY);

  /** What a tick may have to do, by a part of the text that does it. */
  private static final List<String> WORK =
      List.of(
          "its message is gone",
          "a.failures =",
          "set paused_at = now()",
          "select n.id", // locks what is terminated
          "select r.id", // locks what begins, or is skipped
          "set status = 'terminated'",
          "set status = 'skipped'",
          "set cancelled_at",
          "set status = 'begun'",
          "decided_up_to = greatest",
          "o where o.id = any", // deletes messages of what is on record already
          "set awaited_by = case",
          "pg_notify(");

  private final TestDatabase database;

  TimerStoreIT(TestDatabase database) {
    this.database = database;
  }

  @BeforeEach
  void setUp() {
    database.migrate(TimerMigrations.of("public", "outbox"), TimerMigrations::migrate);
    database.update("truncate outbox, outbox_timer, outbox_timer_run");
  }

  private TimerStore store(DataSource source) {
    return new TimerStore(
        PostgresOutbox.on(source, database.table()), "shop", QUEUE, InstantSource.system());
  }

  private static Map<String, Timer> byName(List<Timer> timers) {
    return timers.stream().collect(Collectors.toMap(Timer::name, Function.identity()));
  }

  /** Puts back what is decided, so that the instants of so many days, hours or minutes are due. */
  private void due(int number, String unit) {
    database.update(
        "update outbox_timer set due_at = now(), decided_up_to ="
            + " date_trunc('%1$s', now(), 'UTC') - interval '%2$d %1$s'".formatted(unit, number));
  }

  @Test
  void twelveSchedulersMakeEachRunOnceAndItsMessageOnce() throws Exception {
    // so that no minute begins meanwhile
    Instant end =
        database.one(OffsetDateTime.class, "select date_trunc('minute', now())").toInstant();
    List<Timer> timers =
        IntStream.rangeClosed(1, 5)
            .mapToObj(
                nth ->
                    Timer.of("timer-" + nth, MINUTELY)
                        .onTime(A_DAY)
                        .overlap(OverlapPolicy.ALLOW_ALL)
                        .endingAt(end))
            .toList();
    DataSource pool = database.pool(12);
    store(pool).register(timers, null);
    database.update(
        "update outbox_timer set due_at = now(),"
            + " decided_up_to = ?::timestamptz - interval '120 minutes'",
        end.toString());
    ExecutorService threads = Executors.newFixedThreadPool(12);
    try {
      List<Future<?>> schedulers = new ArrayList<>();
      for (int i = 0; i < 12; i++) {
        TimerStore store = store(pool);
        schedulers.add(
            threads.submit(
                () -> {
                  Tick tick;
                  do {
                    tick = store.tick(byName(timers), Set.of(), 2);
                  } while (isBehind(tick));
                }));
      }
      for (Future<?> scheduler : schedulers) {
        scheduler.get();
      }
    } finally {
      threads.shutdownNow();
    }

    List<String> expected =
        database.list(
            String.class,
            "select 'timer-' || n || ' ' || instant from generate_series(1, 5) n,"
                + " generate_series(?::timestamptz - interval '119 minutes', ?::timestamptz,"
                + " interval '1 minute') instant",
            end.toString(),
            end.toString());
    assertThat(expected).hasSize(600);
    assertThat(database.list(String.class, "select name || ' ' || instant from outbox_timer_run"))
        .containsExactlyInAnyOrderElementsOf(expected);
    assertThat(database.count("outbox")).isEqualTo(600);
    assertThat(
            database.count(
                "outbox o join outbox_timer_run r on r.message_id = o.id"
                    + " and r.status = 'begun' and r.name = o.type and r.instant || ' ' || r.cause"
                    + " = split_part(o.headers ->> 'timer-run', ' ', 1)::timestamptz || ' '"
                    + " || split_part(o.headers ->> 'timer-run', ' ', 2)"))
        .isEqualTo(600);
  }

  private static boolean isBehind(Tick tick) {
    Duration untilNext = tick.untilNext();
    return untilNext != null && untilNext.isNegative();
  }

  /** Each node has the definition from its own code. */
  private static Timer spread() {
    return Timer.of("t", MINUTELY)
        .onTime(Duration.ofDays(36_525))
        .overlap(OverlapPolicy.ALLOW_ALL)
        .jitter(Duration.ofMinutes(30))
        .endingAt(Instant.parse("2026-01-01T02:00:00Z"));
  }

  @Test
  void aMessageIsDueByTheJitterAfterTheInstantOfItsRunWhicheverNodeDecides() {
    Instant begin = Instant.parse("2026-01-01T00:00:00Z");
    List<String> expected =
        IntStream.rangeClosed(1, 120)
            .mapToObj(minute -> begin.plus(Duration.ofMinutes(minute)))
            .map(instant -> text(instant, Instants.jitter(spread(), instant)))
            .toList();
    for (int node = 1; node <= 2; node++) {
      database.update("truncate outbox, outbox_timer, outbox_timer_run");
      TimerStore store = store(database.plain());
      store.register(List.of(spread()), null);
      database.update(
          "update outbox_timer set due_at = now(), decided_up_to = ?::timestamptz",
          begin.toString());
      store.tick(Map.of("t", spread()), Set.of(), 10);

      assertThat(
              database.list(
                  String.class,
                  "select extract(epoch from r.instant)::bigint || ' '"
                      + " || (extract(epoch from o.available_at - r.instant) * 1000)::bigint"
                      + " from outbox o join outbox_timer_run r on r.message_id = o.id"
                      + " order by r.instant"))
          .as("node %d", node)
          .isEqualTo(expected);
    }
  }

  private static String text(Instant instant, Duration jitter) {
    return instant.getEpochSecond() + " " + jitter.toMillis();
  }

  /** Before each of its statements in turn, and before its commit. */
  @Test
  void aTickThatDiesAtAnyStatementLeavesNothingAndIsMadeUpFor() {
    Map<String, Timer> timers = timersWithAllThereIsToDo();
    List<String> before = state();
    CountingDataSource counting = new CountingDataSource(database.plain());
    TimerStore dying = store(counting);
    AtomicInteger left = new AtomicInteger();
    Runnable deathInTurn =
        () -> {
          if (left.getAndDecrement() == 0) {
            database.list(
                Boolean.class,
                "select pg_terminate_backend(pid) from pg_stat_activity where datname ="
                    + " current_database() and pid <> pg_backend_pid()");
          }
        };
    counting.beforeEach(text -> deathInTurn.run());
    counting.beforeCommit(deathInTurn);
    int deaths = 0;
    long executions = 0;
    left.set(deaths);
    while (dies(() -> dying.tick(timers, Set.of(), 10))) {
      assertThat(state()).as("after a death before step %d", deaths + 1).isEqualTo(before);
      executions = counting.executions();
      left.set(++deaths);
    }

    assertThat(deaths)
        .as("at each of its statements and at its commit")
        .isEqualTo(counting.executions() - executions + 1);
    assertThat(WORK).allMatch(part -> counting.executionsOf(part) > 0);
    assertThat(
            database.list(
                String.class,
                "select name || ' ' || status || ' ' || count(*) from outbox_timer_run"
                    + " group by name, status order by name, status"))
        .containsExactly(
            "all begun 1",
            "all waiting 8",
            "beginning begun 1",
            "beginning succeeded 1",
            "beginning waiting 1",
            "cancelling begun 1",
            "cancelling skipped 1",
            "cancelling waiting 1",
            "failing failed 1",
            "failing waiting 1",
            "recorded succeeded 2",
            "skipping begun 1",
            "skipping skipped 2",
            "terminating begun 1",
            "terminating skipped 1",
            "terminating terminated 1",
            "without-message begun 1",
            "without-message failed 1",
            "without-message waiting 1");
    assertThat(
            database.list(
                String.class, "select name from outbox_timer where paused_at is not null"))
        .containsExactly("failing");
    assertEachBegunRunHasAMessageAndNoOtherHas();
  }

  /** Each has a run that has begun and others that wait, and instants are due. */
  private Map<String, Timer> timersWithAllThereIsToDo() {
    List<Timer> buffering =
        Stream.of(
                "beginning", "cancelling", "failing", "recorded", "terminating", "without-message")
            .map(name -> Timer.of(name, DAILY))
            .toList();
    Map<String, Timer> timers = new HashMap<>(byName(buffering));
    timers.put("all", Timer.of("all", DAILY).catchUp(CatchUp.ALL));
    timers.put("skipping", Timer.of("skipping", DAILY).overlap(OverlapPolicy.SKIP));
    TimerStore store = store(database.plain());
    store.register(timers.values(), null);
    due(5, "day");
    store.tick(timers, Set.of(), 10);
    goBy(1);
    store.tick(timers, Set.of(), 10);
    goBy(3);
    timers.computeIfPresent(
        "cancelling", (name, timer) -> timer.overlap(OverlapPolicy.CANCEL_OTHER));
    timers.computeIfPresent(
        "terminating", (name, timer) -> timer.overlap(OverlapPolicy.TERMINATE_OTHER));
    timers.computeIfPresent("failing", (name, timer) -> timer.pauseAfterFailures(1));
    endBegun("beginning", "succeeded");
    endBegun("failing", "failed");
    endBegun("recorded", "succeeded");
    database.update("delete from outbox where type = 'without-message'");
    database.update( // the latest instant that is due
        "update outbox_timer_run set status = 'succeeded', ended_at = now(),"
            + " instant = instant + interval '72 hours'"
            + " where name = 'recorded' and status = 'waiting'");
    return timers;
  }

  private void endBegun(String timer, String status) {
    database.update(
        "update outbox_timer_run set status = ?, ended_at = now()"
            + " where name = ? and status = 'begun'",
        status,
        timer);
    database.update("delete from outbox where type = ?", timer);
  }

  /** As where it is asked for while a tick begins the run before. */
  @Test
  void theEndOfARunIsToldIfAnotherWaitsOfWhichTheTickDidNotKnow() {
    Timer timer = Timer.of("t", DAILY);
    TimerStore store = store(database.plain());
    store.register(List.of(timer), null);
    due(1, "day");
    store.tick(Map.of("t", timer), Set.of(), 10);
    database.update(
        "insert into outbox_timer_run (application, name, instant, cause, request, status)"
            + " values ('shop', 't', now(), 'manual', 'x', 'waiting')");

    Tick tick = store.tick(Map.of("t", timer), Set.of(), 10);

    assertThat(tick.again()).isTrue();
    assertThat(database.count("outbox_timer_run where status = 'begun' and awaited_by = 'all'"))
        .isEqualTo(1);
    assertThat(store.tick(Map.of("t", timer), Set.of(), 10).timers()).isZero();
  }

  @Test
  void aRunThatGoesBesideOthersWaitsForThoseOfItsCauseAlone() {
    Timer timer = Timer.of("t", DAILY).overlap(OverlapPolicy.ALLOW_ALL);
    TimerStore store = store(database.plain());
    store.register(List.of(timer), null);
    due(1, "day");
    database.update(
        "insert into outbox_timer_run (application, name, instant, cause, request, status)"
            + " select 'shop', 't', now() - make_interval(days => n), 'backfill', 'x', 'waiting'"
            + " from generate_series(2, 3) n");
    Tick tick = store.tick(Map.of("t", timer), Set.of(), 10);
    assertThat(tick.again()).isTrue();
    assertThat(openRuns()).containsExactly("backfill begun", "backfill waiting", "catch_up begun");
    assertThat(store.tick(Map.of("t", timer), Set.of(), 10).timers()).isZero();

    end("catch_up");
    assertThat(store.tick(Map.of("t", timer), Set.of(), 10).timers()).isZero();

    end("backfill");
    assertThat(store.tick(Map.of("t", timer), Set.of(), 10).timers()).isEqualTo(1);
    assertThat(openRuns()).containsExactly("backfill begun");
  }

  private List<String> openRuns() {
    return database.list(
        String.class,
        "select cause || ' ' || status from outbox_timer_run where ended_at is null"
            + " order by cause, status");
  }

  private void end(String cause) {
    database.update(
        "update outbox_timer_run set status = 'succeeded', ended_at = now()"
            + " where status = 'begun' and cause = ?",
        cause);
  }

  /** However many others have runs that wait and cannot begin. */
  @Test
  void aRunThatMayBeginDoesAmongManyThatMayNot() {
    List<Timer> timers =
        IntStream.rangeClosed(1, 50)
            .mapToObj(nth -> Timer.of("timer-%02d".formatted(nth), DAILY).catchUp(CatchUp.ALL))
            .toList();
    TimerStore store = store(database.plain());
    store.register(timers, null);
    due(3, "day");
    store.tick(byName(timers), Set.of(), 50);
    assertThat(database.count("outbox_timer_run where status = 'begun'")).isEqualTo(50);
    assertThat(store.tick(byName(timers), Set.of(), 2).timers()).isZero();
    database.update(
        "update outbox_timer_run set status = 'succeeded', ended_at = now()"
            + " where name = 'timer-50' and status = 'begun'");

    assertThat(store.tick(byName(timers), Set.of(), 2).timers()).isEqualTo(1);

    assertThat(
            database.list(
                String.class,
                "select status from outbox_timer_run where name = 'timer-50' order by instant"))
        .containsExactly("succeeded", "begun", "waiting");
  }

  @Test
  void aRunThatWaitedIsDueByItsJitterAfterItsInstant() {
    Timer timer = Timer.of("t", DAILY).jitter(Duration.ofDays(3650));
    TimerStore store = store(database.plain());
    store.register(List.of(timer), null);
    due(1, "day");
    store.tick(Map.of("t", timer), Set.of(), 10);
    goBy(1);
    store.tick(Map.of("t", timer), Set.of(), 10);
    assertThat(database.count("outbox_timer_run where status = 'waiting'")).isEqualTo(1);
    database.update("delete from outbox");
    database.update(
        "update outbox_timer_run set status = 'succeeded', ended_at = now() where status = 'begun'");

    store.tick(Map.of("t", timer), Set.of(), 10);

    Instant instant =
        database
            .one(
                OffsetDateTime.class, "select instant from outbox_timer_run where status = 'begun'")
            .toInstant();
    assertThat(database.one(OffsetDateTime.class, "select available_at from outbox").toInstant())
        .isEqualTo(instant.plus(Instants.jitter(timer, instant)));
  }

  @Test
  void aRunThatIsOnRecordAlreadyHasNoSecondMessage() {
    List<Timer> timers =
        List.of(Timer.of("a", DAILY), Timer.of("b", DAILY), Timer.of("in-time", DAILY));
    TimerStore store = store(database.plain());
    store.register(timers, null);
    due(1, "day");
    store.tick(byName(timers), Set.of(), 10);
    database.update("update outbox_timer_run set status = 'succeeded', ended_at = now()");
    database.update("delete from outbox");
    database.update("delete from outbox_timer_run where name = 'b'");
    database.update(
        "update outbox_timer_run set cause = 'scheduled', missed_first = null, missed_count = 0"
            + " where name = 'in-time'");
    due(1, "day"); // as if a backup of the timers had been put back

    assertThat(store.tick(byName(timers), Set.of(), 10).timers()).isEqualTo(3);

    assertThat(
            database.list(
                String.class, "select name || ' ' || status from outbox_timer_run order by name"))
        .containsExactly("a succeeded", "b begun", "in-time succeeded");
    assertEachBegunRunHasAMessageAndNoOtherHas();
  }

  @Test
  void aRunWhoseMessageSomebodyDeletedHoldsUpNoOther() {
    Timer timer = Timer.of("t", DAILY).overlap(OverlapPolicy.SKIP);
    TimerStore store = store(database.plain());
    store.register(List.of(timer), null);
    due(1, "day");
    store.tick(Map.of("t", timer), Set.of(), 10);
    database.update("delete from outbox");
    goBy(1);

    store.tick(Map.of("t", timer), Set.of(), 10);

    assertThat(
            database.list(
                String.class,
                "select status || coalesce(' ' || last_error, '') from outbox_timer_run order by id"))
        .containsExactly("failed its message is gone", "begun");
    assertEachBegunRunHasAMessageAndNoOtherHas();
  }

  private static boolean dies(Runnable tick) {
    try {
      tick.run();
      return false;
    } catch (OutboxStoreException died) {
      return true;
    }
  }

  private void assertEachBegunRunHasAMessageAndNoOtherHas() {
    assertThat(
            database.list(
                String.class,
                "select coalesce(r.name, o.type) || ' ' || coalesce(r.status, 'no run') from"
                    + " outbox_timer_run r full join outbox o on o.id = r.message_id where"
                    + " (r.status = 'begun') is distinct from (o.id is not null)"))
        .isEmpty();
  }

  private List<String> state() {
    return Stream.of("outbox_timer", "outbox_timer_run", "outbox")
        .flatMap(
            table ->
                database
                    .list(String.class, "select t::text from " + table + " t order by 1")
                    .stream())
        .toList();
  }

  /** Lets days go by: what is stored is so much older then. */
  private void goBy(int days) {
    database.update(
        "update outbox_timer set due_at = now(),"
            + " decided_up_to = decided_up_to - make_interval(days => ?)",
        days);
    // in two steps, as no two instants may be the same meanwhile
    database.update("update outbox_timer_run set instant = instant - interval '1000 days'");
    database.update(
        "update outbox_timer_run set instant = instant + make_interval(days => ?)", 1000 - days);
  }
}
