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
import dev.outbox4j.triggers.metrics.MicrometerTimerMetrics;
import io.micrometer.core.instrument.simple.SimpleMeterRegistry;
import java.time.Duration;
import java.time.Instant;
import java.time.OffsetDateTime;
import java.util.List;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CountDownLatch;
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
  private final PostgresOutbox outbox;
  private Timers timers;

  TimersHealthIT(TestDatabase database) {
    this.database = database;
    this.outbox = PostgresOutbox.on(database.pool(10), database.table());
  }

  @BeforeEach
  void setUp() {
    database.migrate(TimerMigrations.of("public", "outbox"), TimerMigrations::migrate);
    database.update("truncate outbox, outbox_dlq, outbox_timer, outbox_timer_run");
  }

  @AfterEach
  void stop() {
    if (timers != null) {
      timers.stop();
    }
  }

  private Timers.Builder builder() {
    return Timers.builder(outbox, "shop").listen(PgjdbcListen.on(database.plain()));
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

  /** Beside a node whose clock is right; who decides on an instant is a matter of chance. */
  @ParameterizedTest
  @ValueSource(longs = {-300, 300})
  void aNodeWithAWrongClockAndARightOneRunEachSecondOnceAndInTime(long seconds) {
    Timer eachSecond = Timer.of("second", Schedule.every(Duration.ofSeconds(1)));
    BlockingQueue<TimerRun> handled = new LinkedBlockingQueue<>();
    SimpleMeterRegistry registry = new SimpleMeterRegistry();
    try (CapturedLogs logs = new CapturedLogs();
        Timers right = builder().on(eachSecond, handled::add).build()) {
      right.start();
      start(
          builder()
              .clock(() -> Instant.now().plusSeconds(seconds))
              .events(MicrometerTimerMetrics.on(registry))
              .on(eachSecond, handled::add));

      await().atMost(Duration.ofSeconds(60)).until(() -> handled.size() >= 6);
      logs.awaitLine(TimersHealthIT::isOfAWrongClock);
      assertThat(registry.get("outbox.timer.clock.offset").timeGauge().value(TimeUnit.SECONDS))
          .isBetween(seconds - 30.0, seconds + 30.0);
      timers.stop();
      right.stop();

      assertThat(logs.lines().stream().filter(TimersHealthIT::isOfAWrongClock))
          .as("the node whose clock is right says nothing, and the other says it once")
          .hasSize(1);
    }
    assertThat(handled).extracting(TimerRun::cause).containsOnly(Cause.SCHEDULED);
    assertThat(handled).extracting(TimerRun::instant).doesNotHaveDuplicates();
    assertThat(handled).extracting(TimerRun::attempt).containsOnly(1);
    assertThat(database.list(String.class, "select distinct cause from outbox_timer_run"))
        .containsExactly("scheduled");
    assertThat(
            database.list(
                String.class,
                "select instant || ' at ' || started_at from outbox_timer_run"
                    + " where started_at < instant or created_at < instant"
                    + " or started_at > instant + interval '10 seconds'"))
        .as("too early, or too late, by the server's clock")
        .isEmpty();
  }

  private static boolean isOfAWrongClock(String line) {
    return line.startsWith("WARN")
        && line.contains("timers of shop: this process's clock is PT")
        && line.contains("off the server's");
  }

  @Test
  void theRulesCanBeAskedWithAllNodesStopped() {
    Timer watched =
        DAILY.alertWhenMissedFor(Duration.ofHours(1)).alertWithoutSuccessFor(Duration.ofHours(36));
    start(builder().on(watched, run -> {}));
    timers.stop();
    TimerControl control = TimerControl.of(outbox, "shop");
    Timer unknown = Timer.of("weekly", Schedule.every(Duration.ofDays(7)));
    assertThat(rules(control.alerts(List.of(watched, unknown))))
        .containsExactly(Rule.NOT_ON_RECORD);

    database.update(
        "update outbox_timer set due_at = due_at - interval '2 days',"
            + " counts_from = counts_from - interval '2 days',"
            + " registered_at = registered_at - interval '2 days'");

    assertThat(rules(control.alerts(List.of(watched))))
        .containsExactly(Rule.OVERDUE, Rule.MISSED, Rule.NO_SUCCESS);
    List<TimerAlert> alerts = control.alerts(List.of(watched));
    assertThat(alerts.get(0).instants()).as("yesterday's midnight and today's").isEqualTo(2);
    assertThat(alerts.get(1).instants()).as("today's may be within its grace").isBetween(1, 2);
    assertThat(alerts.get(2).instants()).isZero();
    control.pause("daily", "ann", "no paper");
    assertThat(rules(control.alerts(List.of(watched)))).containsExactly(Rule.NO_SUCCESS);
    control.resume("daily");
    assertThat(rules(control.alerts(List.of(watched)))).containsExactly(Rule.NO_SUCCESS);
  }

  @Test
  void theLastInstantOfATimerIsToldIfItHasNoRun() {
    Instant yesterday =
        database
            .one(
                OffsetDateTime.class,
                "select date_trunc('day', now(), 'UTC') - interval '24 hours'")
            .toInstant();
    Timer ended =
        DAILY.endingAt(yesterday).catchUp(CatchUp.NONE).alertWhenMissedFor(Duration.ofMinutes(1));
    start(builder().on(ended, run -> {}));
    TimerControl control = TimerControl.of(outbox, "shop");
    assertThat(control.alerts(List.of(ended))).isEmpty();

    goBy(3);
    await().atMost(Duration.ofSeconds(60)).until(() -> control.timers().get(0).notRun() > 0);
    database.update("update outbox_timer set counts_from = counts_from - interval '3 days'");

    assertThat(control.timers().get(0).due()).isEmpty();
    List<TimerAlert> alerts = control.alerts(List.of(ended));
    assertThat(rules(alerts)).containsExactly(Rule.MISSED);
    assertThat(alerts.get(0).instants()).isPositive();
    assertThat(control.pause("daily", "ann", "it has ended")).isTrue();
    assertThat(control.alerts(List.of(ended))).isEmpty();
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
    TimerControl control = TimerControl.of(outbox, "shop");
    await()
        .until(
            () ->
                database.one(
                        Long.class,
                        "select count(*) from outbox_timer_run where started_at is not null")
                    == 1);

    database.update("update outbox_timer_run set started_at = started_at - interval '2 hours'");

    List<TimerAlert> alerts = control.alerts(List.of(DAILY));
    assertThat(rules(alerts)).containsExactly(Rule.HUNG);
    RecordedRun hanging = control.history("daily", 1).get(0);
    assertThat(alerts.get(0).run())
        .contains(
            new TimerStatus.Started(
                hanging.id(), hanging.instant(), hanging.started().orElseThrow()));
    assertThat(control.timers().get(0).oldestStarted()).isEqualTo(alerts.get(0).run());
    control.remove("daily");
    assertThat(rules(control.alerts(List.of(DAILY)))).containsExactly(Rule.NOT_ON_RECORD);
  }

  /** A node reads what is on record when it starts, and each half minute. */
  @Test
  void theLogSaysWhichRunHangs() {
    Timer timer = DAILY.alertWhenRunningFor(Duration.ofMinutes(1));
    CountDownLatch go = new CountDownLatch(1);
    start(builder().on(timer, run -> go.await()));
    goBy(1);
    TimerControl control = TimerControl.of(outbox, "shop");
    await().until(() -> control.timers().get(0).oldestStarted().isPresent());
    database.update("update outbox_timer_run set started_at = started_at - interval '2 minutes'");
    TimerStatus.Started hanging = control.timers().get(0).oldestStarted().orElseThrow();
    try (CapturedLogs logs = new CapturedLogs();
        Timers another = builder().on(timer, run -> {}).build()) {
      another.start();

      logs.awaitLine(
          line ->
              line.contains("timer daily: HUNG since " + hanging.at())
                  && line.contains("; run " + hanging.id() + " of " + hanging.instant()));
    } finally {
      go.countDown();
    }
  }

  @Test
  void theNextInstantsAreThoseByTheServersClock() {
    TimerControl control = TimerControl.of(outbox, "shop");
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
            + " case when n < 3 then 'failed' else 'succeeded' end,"
            + " now() - make_interval(days => n)"
            + " from generate_series(1, 5) n");
    TimerControl control = TimerControl.of(outbox, "shop");

    assertThat(control.purge(Instant.now(), 100)).isEqualTo(3);

    assertThat(control.history("daily", 10))
        .extracting(RecordedRun::status)
        .containsExactly(RunStatus.FAILED, RunStatus.SUCCEEDED);
  }
}
