package dev.outbox4j.triggers.metrics;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import dev.outbox4j.migrations.TimerMigrations;
import dev.outbox4j.postgres.PostgresOutbox;
import dev.outbox4j.postgres.notify.pgjdbc.PgjdbcListen;
import dev.outbox4j.postgres.testing.PostgresExtension;
import dev.outbox4j.postgres.testing.TestDatabase;
import dev.outbox4j.timer.OverlapPolicy;
import dev.outbox4j.timer.Schedule;
import dev.outbox4j.timer.Timer;
import dev.outbox4j.timer.Timers;
import io.micrometer.core.instrument.Meter;
import io.micrometer.core.instrument.MeterRegistry;
import io.micrometer.core.instrument.simple.SimpleMeterRegistry;
import io.micrometer.prometheusmetrics.PrometheusConfig;
import io.micrometer.prometheusmetrics.PrometheusMeterRegistry;
import java.io.IOException;
import java.time.Duration;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.stream.IntStream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;

/** The code, the registry, Prometheus and the document name the same meters, and they show it. */
@ExtendWith(PostgresExtension.class)
@Tag("once")
class TimerMetersIT {
  /** A line such as: - `name`, `prometheus_name`, gauge, tags `a`, `b`: Meaning. */
  private static final Timer DAILY = Timer.of("daily", Schedule.every(Duration.ofDays(1)));

  private final TestDatabase database;
  private Timers timers;

  TimerMetersIT(TestDatabase database) {
    this.database = database;
  }

  @BeforeEach
  void setUp() {
    database.migrate(TimerMigrations.of("public", "outbox"), TimerMigrations::migrate);
    database.update("truncate outbox, outbox_dlq, outbox_timer, outbox_timer_run");
  }

  @AfterEach
  void stop() {
    timers.stop();
  }

  /** Starts a timer with a run of three missed days. */
  private void run(MeterRegistry registry) {
    timers =
        Timers.builder(PostgresOutbox.on(database.pool(10), database.table()), "shop")
            .listen(PgjdbcListen.on(database.plain()))
            .on(
                DAILY,
                run -> {
                  if (run.attempt() == 1) {
                    throw new IllegalStateException("no paper");
                  }
                })
            .events(MicrometerTimerMetrics.on(registry))
            .build();
    timers.start();
    await().until(() -> !timers.health().timers().isEmpty());
    goBy(3);
    await()
        .until(
            () ->
                database.one(
                        Long.class,
                        "select count(*) from outbox_timer_run where status = 'succeeded'")
                    == 1);
    await().until(() -> registry.find("outbox.timer.run").timers().size() == 2);
    await().until(() -> registry.find("outbox.timer.paused").gauge() != null);
  }

  @Test
  void isDocumentedAsTheCodeDefinesIt() throws IOException {
    timers =
        Timers.builder(PostgresOutbox.on(database.plain(), database.table()), "shop")
            .on(DAILY, run -> {})
            .build();
    DocumentedMeters.assertDocumented("outbox.timer.", TimerMeters.values());
  }

  @Test
  void registersWhatTheCodeDefinesAndShowsIt() {
    SimpleMeterRegistry registry = new SimpleMeterRegistry();
    run(registry);

    DocumentedMeters.assertRegistered(registry, TimerMeters.values());
    assertThat(registry.get("outbox.timer.lateness").timer().count()).isEqualTo(1);
    assertThat(registry.get("outbox.timer.run").tag("outcome", "failure").timer().count())
        .isEqualTo(1);
    assertThat(registry.get("outbox.timer.run").tag("outcome", "success").timer().count())
        .isEqualTo(1);
    assertThat(registry.get("outbox.timer.healthy").gauge().value()).isEqualTo(1);
    assertThat(registry.get("outbox.timer.tick").timer().count()).isPositive();
    assertThat(registry.get("outbox.timer.alerts").gauges()).allMatch(gauge -> gauge.value() == 0);
    timers.stop();
    assertThat(registry.getMeters())
        .noneMatch(meter -> meter.getId().getType() == Meter.Type.GAUGE);
  }

  /** Those of timers that no node has, so that they stay as they are. */
  @Test
  void gaugesShowWhatIsOnRecord() {
    database.update(
        "insert into outbox_timer (application, name, schedule, registered_at, decided_up_to,"
            + " due_at, not_run_count, paused_at, paused_by, pause_reason) values"
            + " ('shop', 'late', 'x', now() - interval '2 days', now(), now() - interval '1 hour',"
            + " 7, null, null, null),"
            + " ('shop', 'resting', 'x', now() - interval '2 days', now(), null,"
            + " 0, now(), 'ann', 'no paper')");
    database.update(
        "insert into outbox_timer_run (application, name, instant, cause, status, ended_at)"
            + " select 'shop', 'late', now() - make_interval(hours => n), 'scheduled',"
            + " case when n = 3 then 'begun' else 'waiting' end, null from generate_series(1, 3) n"
            + " union all select 'shop', 'resting', now() - interval '4 hours', 'scheduled',"
            + " 'succeeded', now() - interval '3 hours'");
    SimpleMeterRegistry registry = new SimpleMeterRegistry();
    start(registry, DAILY);

    assertThat(seconds(registry, "outbox.timer.overdue", "late")).isBetween(3_600.0, 3_900.0);
    assertThat(seconds(registry, "outbox.timer.since.success", "late"))
        .as("since it was put on record")
        .isBetween(172_800.0, 173_100.0);
    assertThat(value(registry, "outbox.timer.waiting", "late")).isEqualTo(2);
    assertThat(value(registry, "outbox.timer.begun", "late")).isEqualTo(1);
    assertThat(value(registry, "outbox.timer.not.run", "late")).isEqualTo(7);
    assertThat(value(registry, "outbox.timer.paused", "late")).isZero();

    assertThat(seconds(registry, "outbox.timer.overdue", "resting")).isZero();
    assertThat(seconds(registry, "outbox.timer.since.success", "resting"))
        .isBetween(10_800.0, 11_100.0);
    assertThat(value(registry, "outbox.timer.waiting", "resting")).isZero();
    assertThat(value(registry, "outbox.timer.begun", "resting")).isZero();
    assertThat(value(registry, "outbox.timer.not.run", "resting")).isZero();
    assertThat(value(registry, "outbox.timer.paused", "resting")).isEqualTo(1);

    assertThat(seconds(registry, "outbox.timer.overdue", "daily")).isZero();
    assertThat(seconds(registry, "outbox.timer.since.success", "daily")).isBetween(0.0, 300.0);
    assertThat(value(registry, "outbox.timer.paused", "daily")).isZero();
  }

  @Test
  void alertsAreCountedByTheirRule() {
    Timer watched =
        DAILY.alertWhenMissedFor(Duration.ofHours(1)).alertWithoutSuccessFor(Duration.ofHours(36));
    Timer unsuccessful =
        Timer.of("unsuccessful", DAILY.schedule()).alertWithoutSuccessFor(Duration.ofHours(36));
    database.update(
        "insert into outbox_timer (application, name, schedule, registered_at, counts_from,"
            + " decided_up_to, due_at)"
            + " select 'shop', name, ?, now() - interval '3 days', now() - interval '3 days',"
            + " now(), date_trunc('day', now(), 'UTC') + interval '1 day'"
            + " from unnest(array['daily', 'unsuccessful']) as t (name)",
        DAILY.schedule().description());
    database.update(
        "insert into outbox_timer_run (application, name, instant, cause, status, started_at)"
            + " values ('shop', 'daily', now() - interval '2 hours', 'manual', 'begun',"
            + " now() - interval '2 hours')");
    SimpleMeterRegistry registry = new SimpleMeterRegistry();
    start(registry, watched, unsuccessful);

    assertThat(alerts(registry, "hung")).isEqualTo(1);
    assertThat(alerts(registry, "missed")).isEqualTo(1);
    assertThat(alerts(registry, "no_success")).isEqualTo(2);
    assertThat(alerts(registry, "overdue")).isZero();
    assertThat(alerts(registry, "not_on_record")).isZero();
    assertThat(alerts(registry, "schedule_fails")).isZero();
  }

  private void start(MeterRegistry registry, Timer... own) {
    Timers.Builder builder =
        Timers.builder(PostgresOutbox.on(database.pool(10), database.table()), "shop")
            .events(MicrometerTimerMetrics.on(registry));
    for (Timer timer : own) {
      builder.on(timer, run -> {});
    }
    timers = builder.build();
    timers.start();
    await()
        .until(
            () ->
                registry.find("outbox.timer.paused").gauges().size()
                    == database.count("outbox_timer"));
  }

  private static double seconds(MeterRegistry registry, String name, String timer) {
    return registry.get(name).tag("timer", timer).timeGauge().value(TimeUnit.SECONDS);
  }

  private static double value(MeterRegistry registry, String name, String timer) {
    return registry.get(name).tag("timer", timer).gauge().value();
  }

  private static double alerts(MeterRegistry registry, String rule) {
    return registry.get("outbox.timer.alerts").tag("rule", rule).gauge().value();
  }

  @Test
  void runsThatAreSkippedOrTerminatedAreCounted() {
    SimpleMeterRegistry registry = new SimpleMeterRegistry();
    Set<String> handled = ConcurrentHashMap.newKeySet();
    CountDownLatch go = new CountDownLatch(1);
    Timers.Builder builder =
        Timers.builder(PostgresOutbox.on(database.pool(10), database.table()), "shop")
            .listen(PgjdbcListen.on(database.plain()))
            .events(MicrometerTimerMetrics.on(registry));
    for (OverlapPolicy policy : List.of(OverlapPolicy.SKIP, OverlapPolicy.TERMINATE_OTHER)) {
      builder.on(
          Timer.of(policy.name(), DAILY.schedule()).overlap(policy),
          run -> {
            if (handled.add(run.timer().name())) {
              go.await();
            }
          });
    }
    timers = builder.build();
    timers.start();
    await().until(() -> registry.find("outbox.timer.paused").gauges().size() == 2);
    assertThat(registry.get("outbox.timer.skipped").counters())
        .hasSize(2)
        .allMatch(counter -> counter.count() == 0);
    goBy(1);
    await().until(() -> handled.size() == 2);
    database.update("update outbox_timer_run set instant = instant - interval '1 day'");

    goBy(1);

    await().until(() -> count(registry, "outbox.timer.skipped", OverlapPolicy.SKIP) == 1);
    await()
        .until(
            () -> count(registry, "outbox.timer.terminated", OverlapPolicy.TERMINATE_OTHER) == 1);
    go.countDown();
    assertThat(count(registry, "outbox.timer.terminated", OverlapPolicy.SKIP)).isZero();
    assertThat(count(registry, "outbox.timer.skipped", OverlapPolicy.TERMINATE_OTHER)).isZero();
  }

  private void goBy(int days) {
    database.list(
        String.class,
        "with gone as (update outbox_timer set due_at = now(),"
            + " decided_up_to = decided_up_to - make_interval(days => ?) returning 1)"
            + " select pg_notify('outbox_outbox_timer', 'shop')::text from gone",
        days);
  }

  private static double count(MeterRegistry registry, String name, OverlapPolicy timer) {
    return registry.get(name).tag("timer", timer.name()).counter().count();
  }

  @Test
  void isScrapedByPrometheusUnderTheNameInTheDocument() throws IOException {
    PrometheusMeterRegistry registry = new PrometheusMeterRegistry(PrometheusConfig.DEFAULT);
    run(registry);

    DocumentedMeters.assertScraped(registry, "outbox.timer.");
  }

  @Test
  void timersBeyondTheFirstHundredShareAValue() {
    SimpleMeterRegistry registry = new SimpleMeterRegistry();
    Timers.Builder builder =
        Timers.builder(PostgresOutbox.on(database.pool(10), database.table()), "shop")
            .events(MicrometerTimerMetrics.on(registry));
    IntStream.range(0, 103)
        .mapToObj(number -> Timer.of("t%03d".formatted(number), DAILY.schedule()))
        .forEach(timer -> builder.on(timer, run -> {}));
    timers = builder.build();
    timers.start();
    await().until(() -> registry.find("outbox.timer.waiting").gauges().size() == 101);
    assertThat(registry.get("outbox.timer.waiting").tag("timer", "other").gauge().value()).isZero();
  }
}
