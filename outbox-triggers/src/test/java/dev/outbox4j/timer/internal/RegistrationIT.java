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
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
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
    TimerMigrations.of("public", "outbox").migrate(database.plain());
    database.update("truncate outbox, outbox_timer, outbox_timer_run");
  }

  private TimerStore store() {
    return new TimerStore(
        PostgresOutbox.on(database.plain(), database.table()), "shop", "timers.shop");
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
  void aDeploymentHasOneRunOverAllItsNodes() throws Exception {
    Timer timer = DAILY.runOnStartup();
    ExecutorService nodes = Executors.newFixedThreadPool(8);
    try {
      for (String deployment : List.of("v1", "v1", "v2")) {
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
