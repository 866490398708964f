package dev.outbox4j.timer.internal;

import static org.assertj.core.api.Assertions.assertThat;

import dev.outbox4j.migrations.TimerMigrations;
import dev.outbox4j.postgres.PostgresOutbox;
import dev.outbox4j.postgres.testing.PostgresExtension;
import dev.outbox4j.postgres.testing.TestDatabase;
import dev.outbox4j.timer.OnChange;
import dev.outbox4j.timer.Schedule;
import dev.outbox4j.timer.Timer;
import java.time.Duration;
import java.time.Instant;
import java.time.InstantSource;
import java.time.OffsetDateTime;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.function.Function;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;

/** What nodes put on record when they start. */
@ExtendWith(PostgresExtension.class)
class RegistrationIT {
  private static final Timer DAILY = Timer.of("t", Schedule.every(Duration.ofDays(1)));
  private static final Timer WEEKLY = Timer.of("t", Schedule.every(Duration.ofDays(7)));

  private final TestDatabase database;

  RegistrationIT(TestDatabase database) {
    this.database = database;
  }

  @BeforeEach
  void setUp() {
    database.migrate(TimerMigrations.of("public", "outbox"), TimerMigrations::migrate);
    database.update("truncate outbox, outbox_timer, outbox_timer_run");
  }

  private TimerStore store() {
    return new TimerStore(
        PostgresOutbox.on(database.plain(), database.table()),
        "shop",
        "timers.shop",
        InstantSource.system());
  }

  private String record() {
    return database.one(String.class, "select t::text from outbox_timer t");
  }

  private void goBy(int days) {
    database.update(
        "update outbox_timer set due_at = due_at - make_interval(days => ?),"
            + " decided_up_to = decided_up_to - make_interval(days => ?)",
        days,
        days);
  }

  private List<String> runs() {
    return database.list(
        String.class, "select cause || ' ' || missed_count from outbox_timer_run order by id");
  }

  @Test
  void theSameDefinitionChangesNothing() {
    store().register(List.of(DAILY), "v1");
    String before = record();

    store().register(List.of(DAILY), "v2");

    assertThat(record()).isEqualTo(before);
  }

  @Test
  void anotherScheduleBeginsAnewUnlessThePastIsKept() {
    store().register(List.of(DAILY), null);
    goBy(20);
    store().register(List.of(WEEKLY), null);
    store().tick(Map.of("t", WEEKLY), Set.of(), 10);
    assertThat(runs()).isEmpty();

    goBy(21);
    Timer keeping = DAILY.onChange(OnChange.KEEP);
    store().register(List.of(keeping), null);
    store().tick(Map.of("t", keeping), Set.of(), 10);
    assertThat(runs()).containsExactly("catch_up 21");
  }

  @Test
  void aNodeWithAnotherScheduleThanTheOneOnRecordLeavesTheTimerAlone() {
    store().register(List.of(DAILY), null);
    store().register(List.of(WEEKLY), null);
    goBy(8);

    TimerStore.Tick tick = store().tick(Map.of("t", DAILY), Set.of(), 10);

    assertThat(tick.timers()).isZero();
    assertThat(tick.others()).containsExactly("t");
    assertThat(tick.untilNext()).isNull();
    assertThat(runs()).isEmpty();
    assertThat(store().tick(Map.of("t", WEEKLY), Set.of(), 10).timers()).isEqualTo(1);
    assertThat(runs()).containsExactly("catch_up 1");
  }

  @Test
  void aTimerOfAnotherScheduleThatNobodyTakesCareOfIsToldAsAbandoned() {
    store().register(List.of(WEEKLY), null);
    database.update("update outbox_timer set due_at = now() - interval '1 minute'");
    assertThat(store().tick(Map.of("t", DAILY), Set.of(), 10).abandoned()).isEmpty();
    database.update("update outbox_timer set due_at = now() - interval '3 minutes'");
    assertThat(store().tick(Map.of("t", DAILY), Set.of(), 10).abandoned()).containsExactly("t");
    assertThat(store().tick(Map.of(), Set.of(), 10).abandoned()).isEmpty();
  }

  @Test
  void aTimerThatWasOverIsDueAgainWhenItsEndIsPutOff() {
    Instant now = database.one(OffsetDateTime.class, "select now()").toInstant();
    Timer over = DAILY.endingAt(now.minus(Duration.ofDays(2)));
    store().register(List.of(over), null);
    assertThat(database.count("outbox_timer where due_at is null")).isEqualTo(1);

    store().register(List.of(DAILY.endingAt(now.plus(Duration.ofDays(2)))), null);

    assertThat(database.count("outbox_timer where due_at > now()")).isEqualTo(1);
  }

  @Test
  void oneScheduleThatFailsKeepsNoOtherTimerFromBeingRun() {
    Timer throwing =
        Timer.of(
            "throwing",
            schedule(
                after -> {
                  throw new IllegalStateException("no");
                }));
    Timer standing = Timer.of("standing", schedule(after -> Optional.of(after)));
    Timer never = Timer.of("never", schedule(after -> Optional.of(Instant.MAX)));
    Map<String, Timer> timers =
        Map.of("t", DAILY, "throwing", throwing, "standing", standing, "never", never);
    store().register(timers.values(), null);
    goBy(2);
    database.update("update outbox_timer set due_at = now()");

    assertThat(store().tick(timers, Set.of(), 10).timers()).isEqualTo(4);

    assertThat(runs()).containsExactly("catch_up 2");
    assertThat(
            database.list(
                String.class,
                "select name from outbox_timer where due_at between now() + interval '50 s' and"
                    + " now() + interval '1 minute' order by name"))
        .containsExactly("standing", "throwing");
  }

  @Test
  void instantsFinerThanTheDatabaseHasThemAreRunOnceAndNotEarly() {
    Instant first = Instant.parse("2026-01-01T00:00:00.123456789Z");
    Timer timer =
        Timer.of(
            "t",
            schedule(
                after ->
                    Optional.of(
                        after.isBefore(first) ? first : after.plus(Duration.ofDays(36_500)))));
    store().register(List.of(timer), null);
    database.update("update outbox_timer set decided_up_to = '2025-12-31', due_at = now()");
    for (int i = 0; i < 3; i++) {
      store().tick(Map.of("t", timer), Set.of(), 10);
      database.update("update outbox_timer set due_at = now()");
    }

    assertThat(runs()).containsExactly("catch_up 1");
    assertThat(
            database.one(OffsetDateTime.class, "select instant from outbox_timer_run").toInstant())
        .isEqualTo(Instant.parse("2026-01-01T00:00:00.123457Z"));
    assertThat(database.count("outbox")).isEqualTo(1);
  }

  @Test
  void ofATimerWithoutStateOldRunsAreForgottenButForTheLastAndWhatMatters() {
    Timer timer = DAILY.keepState(false);
    store().register(List.of(timer), null);
    database.update(
        """
        insert into outbox_timer_run (application, name, instant, cause, request, status, ended_at)
        values ('shop', 't', '2026-01-01', 'scheduled', '', 'succeeded', now() - interval '2 h'),
          ('shop', 't', '2026-01-02', 'scheduled', '', 'failed', now() - interval '2 h'),
          ('shop', 't', '2026-01-03', 'manual', 'x', 'succeeded', now() - interval '2 h'),
          ('shop', 't', '2026-01-04', 'scheduled', '', 'skipped', now() - interval '2 h'),
          ('shop', 't', '2026-01-05', 'scheduled', '', 'succeeded', now() - interval '10 minutes'),
          ('shop', 't', '2026-01-06', 'scheduled', '', 'succeeded', now() - interval '2 h'),
          ('shop', 't', '2026-01-07', 'scheduled', '', 'skipped', now() - interval '2 h')""");

    assertThat(store().forgetEnded(List.of(DAILY), 100)).isZero();
    assertThat(store().forgetEnded(List.of(timer), 2)).isEqualTo(2);
    assertThat(store().forgetEnded(List.of(timer), 2)).isEqualTo(1);

    assertThat(
            database.list(
                String.class,
                "select extract(day from instant at time zone 'Pacific/Auckland')::int::text from"
                    + " outbox_timer_run order by instant"))
        .containsExactly("2", "3", "5", "7");
  }

  private static Schedule schedule(Function<Instant, Optional<Instant>> next) {
    return new Schedule() {
      @Override
      public Optional<Instant> next(Instant after) {
        return next.apply(after);
      }

      @Override
      public String description() {
        return "of a test";
      }
    };
  }

  @Test
  void aDeploymentHasOneRunOverAllItsNodes() throws Exception {
    Timer timer = DAILY.runOnStartup();
    ExecutorService nodes = Executors.newFixedThreadPool(8);
    try {
      for (String deployment : List.of("v1", "v1", "v2", "v1", "v2")) {
        List<Future<?>> started = new ArrayList<>();
        for (int i = 0; i < 8; i++) {
          started.add(
              nodes.submit(
                  () -> {
                    store().register(List.of(timer), deployment);
                    return store().tick(Map.of("t", timer), Set.of(), 10);
                  }));
        }
        for (Future<?> node : started) {
          node.get();
        }
        store().tick(Map.of("t", timer), Set.of(), 10);
        database.update("update outbox_timer_run set status = 'succeeded', ended_at = now()");
      }
    } finally {
      nodes.shutdownNow();
    }

    assertThat(runs()).containsExactly("startup 0", "startup 0");
  }

  @Test
  void aDeploymentDuringAPauseHasNoRun() {
    Timer timer = DAILY.runOnStartup();
    ControlStore control =
        new ControlStore(PostgresOutbox.on(database.plain(), database.table()), "shop");
    deploy(timer, "v1");
    control.pause("t", "ada", "no paper");

    deploy(timer, "v2");
    control.resume("t");
    deploy(timer, "v2");
    assertThat(runs()).containsExactly("startup 0");

    deploy(timer, "v3");
    assertThat(runs()).containsExactly("startup 0", "startup 0");
  }

  private void deploy(Timer timer, String deployment) {
    store().register(List.of(timer), deployment);
    store().tick(Map.of("t", timer), Set.of(), 10);
  }

  @Test
  void aLimitIsCountedDownAndCountsAnewWhenItIsChanged() {
    Timer twice = DAILY.limitedTo(2);
    store().register(List.of(twice), null);
    for (int i = 0; i < 3; i++) {
      goBy(1);
      store().tick(Map.of("t", twice), Set.of(), 10);
      database.update(
          "update outbox_timer_run set status = 'succeeded', ended_at = coalesce(ended_at, now()),"
              + " instant = instant - interval '1 day'");
    }
    assertThat(runs()).hasSize(2);
    assertThat(database.count("outbox_timer where due_at is null")).isEqualTo(1);

    Timer again = DAILY.limitedTo(3);
    store().register(List.of(again), null);
    goBy(1);
    store().tick(Map.of("t", again), Set.of(), 10);
    assertThat(runs()).hasSize(3);
  }
}
