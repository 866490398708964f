package dev.outbox4j.timer.internal;

import static dev.outbox4j.timer.RunStatus.TERMINATED;
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
import dev.outbox4j.timer.TimerStatus;
import dev.outbox4j.timer.internal.TimerStore.Tick;
import java.io.IOException;
import java.sql.Connection;
import java.time.Duration;
import java.time.Instant;
import java.time.InstantSource;
import java.time.OffsetDateTime;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import java.util.function.Function;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;
import org.junit.jupiter.params.provider.ValueSource;

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
    database.migrate(TimerMigrations.of("public", "outbox"), TimerMigrations::migrate);
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

  /** As code that was written in another language may. */
  @SuppressWarnings("unchecked")
  private static <E extends Throwable> void sneaky(Throwable thrown) throws E {
    throw (E) thrown;
  }

  private record Throws(Throwable thrown) implements Schedule {
    @Override
    public Optional<Instant> next(Instant after) {
      TickFaultsIT.<RuntimeException>sneaky(thrown);
      return Optional.empty();
    }

    @Override
    public String description() {
      return "throws";
    }
  }

  static Stream<Throwable> thrown() {
    return Stream.of(
        new NoClassDefFoundError("holidays"), new StackOverflowError(), new IOException("list"));
  }

  @ParameterizedTest
  @MethodSource("thrown")
  void aScheduleThatThrowsWhateverItMayStopsNoOther(Throwable thrown) {
    Timer bad = Timer.of("bad", new Throws(thrown));
    store.register(List.of(bad, GOOD), null);
    dueSinceADay("bad");
    dueSinceADay("good");

    tick(bad, GOOD);

    assertThat(runs()).containsExactly("good catch_up begun 1");
    assertThat(
            database.list(
                String.class, "select name from outbox_timer where due_at > now() order by name"))
        .containsExactly("bad", "good");
  }

  /** Known up to a day, as a list of holidays is. */
  private record KnownUpTo(Instant last) implements Schedule {
    @Override
    public Optional<Instant> next(Instant after) {
      if (!after.isBefore(last)) {
        throw new IllegalStateException("not known after " + last);
      }
      return Optional.of(last);
    }

    @Override
    public String description() {
      return "known";
    }
  }

  @Test
  void anInstantIsRunThoughItsScheduleDoesNotKnowWhatComesAfterIt() {
    Instant last =
        database
            .one(OffsetDateTime.class, "select date_trunc('hour', now()) - interval '1 hour'")
            .toInstant();
    Timer known = Timer.of("known", new KnownUpTo(last));
    store.register(List.of(known), null);
    dueSinceADay("known");

    tick(known);
    assertThat(runs()).as("it may know more the next time").isEmpty();
    tick(known);

    assertThat(runs()).hasSize(1).first().asString().startsWith("known").endsWith("begun 1");
    assertThat(database.count("outbox_timer where due_at > now() + interval '30 s'")).isOne();
  }

  /** Each minute, and slow to say so. */
  private record Slow() implements Schedule {
    @Override
    public Optional<Instant> next(Instant after) {
      LockSupport.parkNanos(TimeUnit.MILLISECONDS.toNanos(20));
      return Schedule.every(Duration.ofMinutes(1)).next(after);
    }

    @Override
    public String description() {
      return "slow";
    }
  }

  @Test
  void aSlowScheduleWithMuchToCatchUpLetsOthersHaveTheirTurn() {
    Timer slow = Timer.of("a", new Slow());
    Timer waits = Timer.of("waits", DAILY);
    store.register(List.of(slow, GOOD, waits), null);
    control.trigger("waits", "by hand");
    dueSinceADay("a");
    dueSinceADay("good");
    database.update(
        "update outbox_timer set due_at = due_at - interval '1 minute' where name = 'a'");

    Tick first = tick(slow, GOOD, waits);
    assertThat(first.timers()).isEqualTo(1);
    assertThat(first.untilNext()).as("some are left").isZero();
    tick(slow, GOOD, waits);

    assertThat(runs()).contains("good catch_up begun 1", "waits manual begun 1");
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

  @Test
  void aRunThatAnEarlierNodeLeftWaitingBeginsOnceThisOneHasLookedAnew() {
    Timer beside = GOOD.overlap(OverlapPolicy.ALLOW_ALL);
    store.register(List.of(beside), null);
    control.trigger("good", "hangs");
    tick(beside);
    control.trigger("good", "waits");
    tick(GOOD);
    tick(GOOD);
    Timer ofOthers =
        Timer.of("good", Schedule.every(Duration.ofHours(1))).overlap(OverlapPolicy.ALLOW_ALL);
    store.awaitAnew(List.of(ofOthers));
    assertThat(tick(beside).timers()).as("it waits for the first, as it is noted").isZero();

    store.awaitAnew(List.of(beside));
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
    whileLocked(
        "select from outbox_timer_run where status = 'begun'",
        () -> {
          assertThat(tick(slow, GOOD).again()).isTrue();
          assertThat(runs())
              .containsExactly(
                  "good catch_up begun 1", "slow manual begun 1", "slow manual waiting 1");
        });
    tick(slow, GOOD);
    assertThat(database.count("outbox_timer_run where awaited_by = 'all'")).isEqualTo(1);
    assertThat(tick(slow, GOOD).timers()).isZero();
  }

  private interface Ticks {
    void run();
  }

  /** While a stranger holds rows. */
  private void whileLocked(String rows, Ticks ticks) throws Exception {
    try (Connection stranger = database.plain().getConnection()) {
      stranger.setAutoCommit(false);
      stranger.createStatement().execute(rows + " for update");
      ticks.run();
      stranger.rollback();
    }
  }

  @Test
  void aRunThatIsLockedWhenItsTurnComesStopsNoOtherTimerAndBeginsOnceItIsFree() throws Exception {
    Timer slow = Timer.of("slow", DAILY);
    store.register(List.of(slow, GOOD), null);
    control.trigger("slow", "one");
    tick(slow, GOOD);
    control.trigger("slow", "two");
    tick(slow, GOOD);
    database.update("delete from outbox");
    database.update(
        "update outbox_timer_run set status = 'succeeded', ended_at = now() where status = 'begun'");
    dueSinceADay("good");

    whileLocked(
        "select from outbox_timer_run where status = 'waiting'",
        () -> {
          Tick beside = tick(slow, GOOD);
          assertThat(beside.timers()).isEqualTo(1);
          assertThat(beside.untilNext()).isZero();
          assertThat(runs())
              .containsExactly(
                  "good catch_up begun 1", "slow manual succeeded 1", "slow manual waiting 1");
          assertThat(tick(slow, GOOD).timers()).isZero();
        });

    assertThat(tick(slow, GOOD).timers()).isEqualTo(1);
    assertThat(runs())
        .containsExactly("good catch_up begun 1", "slow manual begun 1", "slow manual succeeded 1");
    assertThat(database.count("outbox where type = 'slow'")).as("none of the ticks before").isOne();
  }

  /** A run of it has begun, and its next instant is due, as is one of the good timer. */
  private void begunAndDueAgain(Timer slow) {
    store.register(List.of(slow, GOOD), null);
    dueSinceADay("slow");
    tick(slow, GOOD);
    database.update("update outbox_timer_run set instant = instant - interval '1 day'");
    dueSinceADay("slow");
    dueSinceADay("good");
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "select from outbox_timer_run where name = 'slow'",
        "select from outbox where type = 'slow'"
      })
  void aRunThatIsLockedWhenItIsToBeTerminatedStopsNoOtherTimer(String rows) throws Exception {
    Timer slow = Timer.of("slow", DAILY).overlap(OverlapPolicy.TERMINATE_OTHER);
    begunAndDueAgain(slow);

    whileLocked(
        rows,
        () -> {
          Tick beside = tick(slow, GOOD);
          assertThat(beside.timers()).isEqualTo(1);
          assertThat(beside.held()).containsExactly("slow");
          assertThat(runs()).containsExactly("good catch_up begun 1", "slow catch_up begun 1");
        });

    assertThat(tick(slow, GOOD).ended()).containsExactly(new EndedRun("slow", TERMINATED));
    assertThat(runs())
        .containsExactly(
            "good catch_up begun 1", "slow catch_up begun 1", "slow catch_up terminated 1");
    assertThat(database.count("outbox where type = 'slow'")).isEqualTo(1);
  }

  @Test
  void aRunThatIsLockedWhenItIsToBeCancelledIsToldOnceItIsFree() throws Exception {
    Timer slow = Timer.of("slow", DAILY).overlap(OverlapPolicy.CANCEL_OTHER);
    begunAndDueAgain(slow);

    whileLocked(
        "select from outbox_timer_run where name = 'slow'",
        () -> {
          tick(slow, GOOD);
          assertThat(runs()).containsExactly("good catch_up begun 1", "slow catch_up begun 1");
        });

    tick(slow, GOOD);
    assertThat(runs())
        .containsExactly(
            "good catch_up begun 1", "slow catch_up begun 1", "slow catch_up waiting 1");
    assertThat(database.count("outbox_timer_run where cancelled_at is not null")).isOne();
  }

  @Test
  void aLockedRunWhoseMessageIsGoneStopsNoOtherTimer() throws Exception {
    Timer slow = Timer.of("slow", DAILY);
    store.register(List.of(slow, GOOD), null);
    control.trigger("slow", "one");
    tick(slow, GOOD);
    control.trigger("slow", "two");
    tick(slow, GOOD);
    database.update("truncate outbox");
    dueSinceADay("good");

    whileLocked(
        "select from outbox_timer_run where status = 'begun'",
        () -> {
          tick(slow, GOOD);
          assertThat(runs())
              .containsExactly(
                  "good catch_up begun 1", "slow manual begun 1", "slow manual waiting 1");
        });

    tick(slow, GOOD);
    assertThat(runs())
        .containsExactly("good catch_up begun 1", "slow manual begun 1", "slow manual failed 1");
  }

  @Test
  void aTimerThatIsLockedWhenItIsRegisteredHoldsUpNoOther() throws Exception {
    store.register(List.of(GOOD), null);
    Timer hourly = Timer.of("good", Schedule.every(Duration.ofHours(1)));
    Timer next = Timer.of("next", DAILY);

    whileLocked(
        "select from outbox_timer",
        () -> assertThat(store.register(List.of(hourly, next), null)).containsExactly("good"));

    assertThat(control.timers()).extracting(TimerStatus::name).containsExactly("good", "next");
    assertThat(store.register(List.of(hourly), null)).isEmpty();
    assertThat(control.timers().get(0).schedule()).isEqualTo(Instants.description(hourly));
  }

  @Test
  void aRunThatIsLockedIsForgottenLaterAndTheOthersNow() throws Exception {
    Timer without = Timer.of("without", DAILY).keepState(false);
    store.register(List.of(without), null);
    database.update(
        "insert into outbox_timer_run (application, name, instant, cause, status, ended_at)"
            + " select 'shop', 'without', now() - make_interval(hours => n), 'scheduled',"
            + " 'succeeded', now() - make_interval(hours => n) from generate_series(1, 5) n");
    whileLocked(
        "select from outbox_timer_run order by instant limit 1",
        () -> assertThat(store.forgetEnded(List.of(without), 100)).isEqualTo(3));
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

  /** As if its process were frozen. Triggers see the settings of its session. */
  @Test
  void theServerIsToldToEndATickThatIsIdleForAMinute() {
    store.register(List.of(GOOD), null);
    database.update("create table seen (setting text)");
    database.update(
        """
        create function see() returns trigger language plpgsql as $$
        begin
          insert into seen values (current_setting('idle_in_transaction_session_timeout'));
          return new;
        end $$""");
    database.update(
        "create trigger see before update on outbox_timer for each row execute function see()");
    try {
      database.update("update outbox_timer set due_at = now()");
      database.update("truncate seen");

      assertThat(tick(GOOD).timers()).isEqualTo(1);

      assertThat(database.list(String.class, "select setting from seen")).containsExactly("1min");
    } finally {
      database.update("drop trigger see on outbox_timer");
      database.update("drop function see");
      database.update("drop table seen");
    }
  }

  @Test
  void failuresFromBeforeAChangeOfTheScheduleDoNotPauseATimer() {
    Timer before = GOOD.pauseAfterFailures(1);
    store.register(List.of(before), null);
    dueSinceADay("good");
    tick(before);
    fail("good");
    database.update("update outbox_timer_run set instant = instant - interval '48 hours'");
    Timer after = Timer.of("good", Schedule.every(Duration.ofHours(12))).pauseAfterFailures(1);

    store.register(List.of(after), null);
    dueSinceADay("good");
    tick(after);

    assertThat(control.timers().get(0).pause()).isEmpty();
    assertThat(runs()).containsExactly("good catch_up begun 1", "good catch_up failed 1");
    fail("good");
    dueSinceADay("good");
    tick(after);
    assertThat(control.timers().get(0).pause()).isPresent();
  }

  private void fail(String timer) {
    database.update("delete from outbox where type = ?", timer);
    database.update(
        "update outbox_timer_run set status = 'failed', ended_at = now()"
            + " where name = ? and status = 'begun'",
        timer);
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
