package dev.outbox4j.timer.internal;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import dev.outbox4j.migrations.TimerMigrations;
import dev.outbox4j.postgres.PostgresOutbox;
import dev.outbox4j.postgres.testing.PostgresExtension;
import dev.outbox4j.postgres.testing.TestDatabase;
import dev.outbox4j.timer.CatchUp;
import dev.outbox4j.timer.OverlapPolicy;
import dev.outbox4j.timer.Schedule;
import dev.outbox4j.timer.Timer;
import dev.outbox4j.timer.internal.TimerStore.Tick;
import java.sql.Connection;
import java.time.Duration;
import java.time.Instant;
import java.time.InstantSource;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.function.Function;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;

/** Whom else a timer stops of which something is wrong: nobody. */
@ExtendWith(PostgresExtension.class)
class TickFaultsIT {
  private static final Schedule DAILY = Schedule.every(Duration.ofDays(1));
  private static final Duration SOON = Duration.ofSeconds(60);
  private static final Timer GOOD = Timer.of("good", DAILY);

  private final TestDatabase database;
  private final PostgresOutbox outbox;
  private final TimerStore store;
  private final ControlStore control;

  TickFaultsIT(TestDatabase database) {
    this.database = database;
    this.outbox = PostgresOutbox.on(database.plain(), database.table());
    this.store = new TimerStore(outbox, "shop", "timers", InstantSource.system());
    this.control = new ControlStore(outbox, "shop");
  }

  @BeforeEach
  void setUp() {
    TimerMigrations.of("public", "outbox").migrate(database.plain());
    database.update("truncate outbox, outbox_timer, outbox_timer_run");
  }

  /** Known up to a date, as holidays are. */
  private static final class Fails implements Schedule {
    private int calls;

    @Override
    public Optional<Instant> next(Instant after) {
      calls++;
      throw new IllegalStateException("no holidays known");
    }

    @Override
    public String description() {
      return "fails";
    }
  }

  private Tick tick(Timer... timers) {
    Map<String, Timer> byName =
        Stream.of(timers).collect(Collectors.toMap(Timer::name, Function.identity()));
    return store.tick(byName, Set.of(), 10);
  }

  private void dueSinceADay(String timer) {
    database.update(
        "update outbox_timer set due_at = now(), decided_up_to = decided_up_to - interval '1 day'"
            + " where name = ?",
        timer);
  }

  private long lockWaits() {
    return database.count(
        "pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'");
  }

  private List<String> runs() {
    return database.list(
        String.class,
        "select name || ' ' || cause || ' ' || status || ' ' || count(*) from outbox_timer_run"
            + " group by name, cause, status order by 1");
  }

  @Test
  void aScheduleThatFailsWhenTheExpiryIsAskedForStopsNoOther() {
    Timer bad = Timer.of("bad", new Fails()).retryUntilNext();
    store.register(List.of(bad, GOOD), null);
    control.pause("bad", "ada", "its schedule fails");
    control.trigger("bad", "by hand");
    dueSinceADay("good");

    tick(bad, GOOD);

    assertThat(runs()).containsExactly("bad manual begun 1", "good catch_up begun 1");
    assertThat(database.count("outbox where expires_at is null")).isEqualTo(2);
  }

  @Test
  void aRunThatWaitsBeginsThoughItsScheduleFailsAndThatIsNotAskedAgainAtOnce() {
    Fails schedule = new Fails();
    Timer bad = Timer.of("bad", schedule);
    store.register(List.of(bad), null);
    control.trigger("bad", "by hand");

    tick(bad);
    assertThat(runs()).containsExactly("bad manual begun 1");
    int asked = schedule.calls;
    Tick next = tick(bad);

    assertThat(next.timers()).isZero();
    assertThat(next.untilNext()).isBetween(Duration.ofSeconds(50), Duration.ofMinutes(1));
    assertThat(schedule.calls).isEqualTo(asked);
  }

  @Test
  void aRunBeginsThoughTheMessageOfTheOneItWaitsForWasDeleted() {
    store.register(List.of(GOOD), null);
    control.trigger("good", "one");
    tick(GOOD);
    control.trigger("good", "two");
    tick(GOOD);
    assertThat(tick(GOOD).timers()).isZero();
    database.update("delete from outbox");

    tick(GOOD);

    assertThat(runs()).containsExactly("good manual begun 1", "good manual failed 1");
    assertThat(database.count("outbox")).isEqualTo(1);
  }

  @Test
  void aTimerOfWhichAThousandRunsWaitGoesOnAfterTheOutboxWasEmptied() {
    Timer all = Timer.of("all", Schedule.every(Duration.ofMinutes(1))).catchUp(CatchUp.ALL);
    store.register(List.of(all), null);
    database.update(
        "update outbox_timer set due_at = now(), decided_up_to = decided_up_to - interval '1 day'");
    tick(all);
    tick(all);
    assertThat(database.count("outbox_timer where due_at is null")).isEqualTo(1);
    database.update("truncate outbox");

    tick(all);

    assertThat(runs())
        .containsExactly(
            "all catch_up begun 1", "all catch_up failed 1", "all catch_up waiting 1000");
  }

  @Test
  void aRunWaitsByThePolicyOfTheNodeThatWasStartedLast() {
    store.register(List.of(GOOD), null);
    control.trigger("good", "hangs");
    tick(GOOD);
    control.trigger("good", "waits");
    tick(GOOD);
    Timer beside = GOOD.overlap(OverlapPolicy.ALLOW_ALL);
    store.register(List.of(beside), null);

    tick(beside);

    assertThat(runs()).containsExactly("good manual begun 2");
  }

  /** A stranger's, or an ack's whose commit takes long. */
  @Test
  void aLockedRunStopsNoOtherTimerAndIsAwaitedOnceItIsFree() throws Exception {
    Timer slow = Timer.of("slow", DAILY);
    store.register(List.of(slow, GOOD), null);
    control.trigger("slow", "one");
    tick(slow, GOOD);
    control.trigger("slow", "two");
    dueSinceADay("good");
    try (Connection stranger = database.plain().getConnection()) {
      stranger.setAutoCommit(false);
      stranger
          .createStatement()
          .execute("select from outbox_timer_run where status = 'begun' for update");

      assertThat(tick(slow, GOOD).again()).isTrue();

      assertThat(runs())
          .containsExactly("good catch_up begun 1", "slow manual begun 1", "slow manual waiting 1");
      stranger.rollback();
    }
    tick(slow, GOOD);
    assertThat(database.count("outbox_timer_run where awaited_by = 'all'")).isEqualTo(1);
    assertThat(tick(slow, GOOD).timers()).isZero();
  }

  @Test
  void aRunThatIsLockedIsForgottenLaterAndTheOthersNow() throws Exception {
    Timer without = Timer.of("without", DAILY).keepState(false);
    store.register(List.of(without), null);
    database.update(
        "insert into outbox_timer_run (application, name, instant, cause, status, ended_at)"
            + " select 'shop', 'without', now() - make_interval(hours => n), 'scheduled',"
            + " 'succeeded', now() - make_interval(hours => n) from generate_series(1, 5) n");
    try (Connection stranger = database.plain().getConnection()) {
      stranger.setAutoCommit(false);
      stranger
          .createStatement()
          .execute("select from outbox_timer_run order by instant limit 1 for update");
      assertThat(store.forgetEnded(List.of(without), 100)).isEqualTo(3);
      stranger.rollback();
    }
    assertThat(store.forgetEnded(List.of(without), 100)).isEqualTo(1);
    assertThat(database.count("outbox_timer_run")).isEqualTo(1);
  }

  @Test
  void aPauseWaitsForTheTickThatHasTheTimer() throws Exception {
    store.register(List.of(GOOD), null);
    ExecutorService people = Executors.newSingleThreadExecutor();
    try (Connection tick = database.plain().getConnection()) {
      tick.setAutoCommit(false);
      tick.createStatement().execute("select from outbox_timer for no key update");
      Future<Boolean> paused = people.submit(() -> control.pause("good", "ada", "x"));
      assertThat(control.trigger("good", "meanwhile")).as("it waits for no tick").isTrue();
      await().atMost(SOON).until(() -> lockWaits() == 1);
      await().atMost(SOON).until(() -> lockWaits() == 0);
      await().atMost(SOON).until(() -> lockWaits() == 1);
      tick.rollback();
      assertThat(paused.get(60, TimeUnit.SECONDS)).isTrue();
    } finally {
      people.shutdownNow();
    }
  }

  @Test
  void aTimerThatIsRemovedBesideATriggerLeavesNoRun() throws Exception {
    store.register(List.of(GOOD), null);
    ExecutorService people = Executors.newSingleThreadExecutor();
    try (Connection trigger = database.plain().getConnection()) {
      trigger.setAutoCommit(false);
      trigger
          .createStatement()
          .execute(
              "insert into outbox_timer_run (application, name, instant, cause, status)"
                  + " select application, name, now(), 'manual', 'waiting' from outbox_timer t"
                  + " for key share of t");
      Future<Boolean> removed = people.submit(() -> control.remove("good"));
      await().atMost(SOON).until(() -> lockWaits() == 1);
      trigger.commit();
      assertThat(removed.get(60, TimeUnit.SECONDS)).isTrue();
    } finally {
      people.shutdownNow();
    }
    assertThat(runs()).isEmpty();
  }
}
