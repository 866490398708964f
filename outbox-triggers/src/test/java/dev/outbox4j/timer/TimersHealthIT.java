package dev.outbox4j.timer;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import dev.outbox4j.migrations.TimerMigrations;
import dev.outbox4j.postgres.PostgresOutbox;
import dev.outbox4j.postgres.notify.pgjdbc.PgjdbcListen;
import dev.outbox4j.postgres.testing.PostgresExtension;
import dev.outbox4j.postgres.testing.TestDatabase;
import dev.outbox4j.testing.CapturedLogs;
import dev.outbox4j.timer.TimerAlert.Rule;
import java.time.Duration;
import java.time.Instant;
import java.time.OffsetDateTime;
import java.util.List;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** What nodes and people are told of timers. Time goes by in what is stored. */
@ExtendWith(PostgresExtension.class)
class TimersHealthIT {
  private static final Timer DAILY = Timer.of("daily", Schedule.every(Duration.ofDays(1)));

  private final TestDatabase database;
  private Timers timers;

  TimersHealthIT(TestDatabase database) {
    this.database = database;
  }

  @BeforeEach
  void setUp() {
    TimerMigrations.of("public", "outbox").migrate(database.plain());
    database.update("truncate outbox, outbox_dlq, outbox_timer, outbox_timer_run");
  }

  @AfterEach
  void stop() {
    if (timers != null) {
      timers.stop();
    }
  }

  private PostgresOutbox outbox() {
    return PostgresOutbox.on(database.pool(10), database.table());
  }

  private Timers.Builder builder() {
    return Timers.builder(outbox(), "shop").listen(PgjdbcListen.on(database.plain()));
  }

  private void start(Timers.Builder builder) {
    timers = builder.build();
    timers.start();
    await().until(() -> !timers.health().timers().isEmpty());
  }

  private void goBy(int days) {
    database.list(
        String.class,
        "with gone as (update outbox_timer set due_at = now(),"
            + " decided_up_to = decided_up_to - make_interval(days => ?) returning 1)"
            + " select pg_notify('outbox_outbox_timer', 'shop')::text from gone",
        days);
  }

  private static List<Rule> rules(List<TimerAlert> alerts) {
    return alerts.stream().map(TimerAlert::rule).toList();
  }

  @Test
  void aNodeThatTicksIsHealthyAndKnowsItsTimers() {
    start(builder().on(DAILY, run -> {}));

    await().until(() -> timers.health().healthy());
    TimersHealth health = timers.health();
    assertThat(health.application()).isEqualTo("shop");
    assertThat(health.lastTick()).isPresent();
    assertThat(health.failing()).isFalse();
    assertThat(health.timers()).extracting(TimerStatus::name).containsExactly("daily");
    assertThat(health.alerts()).isEmpty();
    assertThat(health.clockOffset().abs()).isLessThan(Duration.ofSeconds(30));
  }

  @Test
  void theNextFiveInstantsAreLoggedAtTheStart() {
    try (CapturedLogs logs = new CapturedLogs()) {
      start(builder().on(DAILY, run -> {}));
      Instant next =
          database
              .one(OffsetDateTime.class, "select date_trunc('day', now(), 'UTC')")
              .toInstant()
              .plus(Duration.ofDays(1));
      logs.awaitLine(
          line ->
              line.contains("timer daily: next at [" + next)
                  && line.contains(next.plus(Duration.ofDays(4)) + "]"));
    }
  }

  @Test
  void aNodeWhoseTicksFailSaysSinceWhenAndWhy() {
    start(builder().on(DAILY, run -> {}));

    database.update("alter table outbox_timer rename to elsewhere");
    try {
      database.list(String.class, "select pg_notify('outbox_outbox_timer', 'shop')::text");
      await().until(() -> timers.health().failing());
      assertThat(timers.health().healthy()).isFalse();
      assertThat(timers.health().failingSince()).isPresent();
      assertThat(timers.health().lastFailure().orElseThrow()).contains("TimerMigrations");
    } finally {
      database.update("alter table elsewhere rename to outbox_timer");
    }
    await().until(() -> timers.health().healthy());
    assertThat(timers.health().failingSince()).isEmpty();
  }

  /** Neither early, nor late, nor twice: nothing but the gauge depends on the node's clock. */
  @ParameterizedTest
  @ValueSource(longs = {-300, 300})
  void aNodeWithAWrongClockSaysSoAndRunsEachInstantOnce(long seconds) throws Exception {
    Duration off = Duration.ofSeconds(seconds);
    BlockingQueue<TimerRun> handled = new LinkedBlockingQueue<>();
    start(builder().clock(() -> Instant.now().plus(off)).on(DAILY, handled::add));

    assertThat(timers.health().clockOffset()).isBetween(off.minusSeconds(30), off.plusSeconds(30));
    assertThat(database.one(Boolean.class, "select due_at > now() from outbox_timer")).isTrue();
    assertThat(database.count("outbox_timer_run")).isZero();
    goBy(1);
    TimerRun run = handled.poll(30, TimeUnit.SECONDS);
    assertThat(run).isNotNull();
    assertThat(run.instant())
        .isEqualTo(
            database
                .one(OffsetDateTime.class, "select date_trunc('day', now(), 'UTC')")
                .toInstant());
    await()
        .until(
            () ->
                database
                    .one(String.class, "select status from outbox_timer_run")
                    .equals("succeeded"));
    assertThat(database.count("outbox_timer_run")).isEqualTo(1);
    assertThat(handled).isEmpty();
  }

  @Test
  void theRulesCanBeAskedWithAllNodesStopped() {
    Timer watched =
        DAILY.alertWhenMissedFor(Duration.ofHours(1)).alertWithoutSuccessFor(Duration.ofHours(36));
    start(builder().on(watched, run -> {}));
    timers.stop();
    TimerControl control = TimerControl.of(outbox(), "shop");
    Timer unknown = Timer.of("weekly", Schedule.every(Duration.ofDays(7)));
    assertThat(rules(control.alerts(List.of(watched, unknown))))
        .containsExactly(Rule.NOT_ON_RECORD);

    database.update(
        "update outbox_timer set due_at = due_at - interval '2 days',"
            + " counts_from = counts_from - interval '2 days',"
            + " registered_at = registered_at - interval '2 days'");

    assertThat(rules(control.alerts(List.of(watched))))
        .containsExactly(Rule.OVERDUE, Rule.MISSED, Rule.NO_SUCCESS);
    control.pause("daily", "ann", "no paper");
    assertThat(rules(control.alerts(List.of(watched)))).containsExactly(Rule.NO_SUCCESS);
    control.resume("daily");
    assertThat(rules(control.alerts(List.of(watched)))).containsExactly(Rule.NO_SUCCESS);
  }

  @Test
  void aRunThatHangsIsToldUntilItEnds() {
    start(
        builder()
            .on(
                DAILY,
                run -> {
                  throw new IllegalStateException("never");
                }));
    goBy(1);
    TimerControl control = TimerControl.of(outbox(), "shop");
    await()
        .until(
            () ->
                database.one(
                        Long.class,
                        "select count(*) from outbox_timer_run where started_at is not null")
                    == 1);

    database.update("update outbox_timer_run set started_at = started_at - interval '2 hours'");

    assertThat(rules(control.alerts(List.of(DAILY)))).containsExactly(Rule.HUNG);
    control.remove("daily");
    assertThat(rules(control.alerts(List.of(DAILY)))).containsExactly(Rule.NOT_ON_RECORD);
  }

  @Test
  void theNextInstantsAreThoseByTheServersClock() {
    TimerControl control = TimerControl.of(outbox(), "shop");
    Instant today =
        database.one(OffsetDateTime.class, "select date_trunc('day', now(), 'UTC')").toInstant();

    assertThat(control.next(DAILY, 2))
        .containsExactly(today.plus(Duration.ofDays(1)), today.plus(Duration.ofDays(2)));
  }

  @Test
  void aPurgeKeepsTheLatestRunAndTheLatestSuccess() {
    start(builder().on(DAILY, run -> {}));
    timers.stop();
    database.update(
        "insert into outbox_timer_run (application, name, instant, cause, status, ended_at)"
            + " select 'shop', 'daily', now() - make_interval(days => n), 'scheduled',"
            + " case when n < 3 then 'failed' else 'succeeded' end, now()"
            + " from generate_series(1, 5) n");
    TimerControl control = TimerControl.of(outbox(), "shop");

    assertThat(control.purge(Instant.now(), 100)).isEqualTo(3);

    assertThat(control.history("daily", 10))
        .extracting(RecordedRun::status)
        .containsExactly(RunStatus.FAILED, RunStatus.SUCCEEDED);
  }
}
