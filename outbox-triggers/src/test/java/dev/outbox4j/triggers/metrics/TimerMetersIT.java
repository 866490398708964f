package dev.outbox4j.triggers.metrics;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import dev.outbox4j.migrations.TimerMigrations;
import dev.outbox4j.postgres.PostgresOutbox;
import dev.outbox4j.postgres.notify.pgjdbc.PgjdbcListen;
import dev.outbox4j.postgres.testing.PostgresExtension;
import dev.outbox4j.postgres.testing.TestDatabase;
import dev.outbox4j.timer.Schedule;
import dev.outbox4j.timer.Timer;
import dev.outbox4j.timer.Timers;
import io.micrometer.core.instrument.Meter;
import io.micrometer.core.instrument.MeterRegistry;
import io.micrometer.core.instrument.Tag;
import io.micrometer.core.instrument.simple.SimpleMeterRegistry;
import io.micrometer.prometheusmetrics.PrometheusConfig;
import io.micrometer.prometheusmetrics.PrometheusMeterRegistry;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.Set;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;

/** The code, the registry, Prometheus and the document name the same meters, and they show it. */
@ExtendWith(PostgresExtension.class)
class TimerMetersIT {
  /** A line such as: - `name`, `prometheus_name`, gauge, tags `a`, `b`: Meaning. */
  private static final Pattern LINE =
      Pattern.compile(
          "- `(outbox\\.timer\\.[a-z.]+)`, `([a-z_]+)`, (\\w+), tags? ((?:`\\w+`(?:, )?)+): (.*)");

  private static final Timer DAILY = Timer.of("daily", Schedule.every(Duration.ofDays(1)));

  private final TestDatabase database;
  private Timers timers;

  TimerMetersIT(TestDatabase database) {
    this.database = database;
  }

  @BeforeEach
  void setUp() {
    TimerMigrations.of("public", "outbox").migrate(database.plain());
    database.update("truncate outbox, outbox_dlq, outbox_timer, outbox_timer_run");
  }

  @AfterEach
  void stop() {
    timers.stop();
  }

  private record Documented(
      String name, String prometheus, String kind, List<String> tags, String meaning) {}

  private static List<Documented> documented() throws IOException {
    // an entry goes on in lines that are indented
    String text =
        Files.readString(Path.of("..", "docs", "metrics.md")).replaceAll("\n  (?=\\S)", " ");
    return text.lines()
        .map(LINE::matcher)
        .filter(Matcher::matches)
        .map(
            line ->
                new Documented(
                    line.group(1),
                    line.group(2),
                    line.group(3),
                    List.of(line.group(4).replace("`", "").split(", ", -1)),
                    line.group(5)))
        .toList();
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
    database.list(
        String.class,
        "with gone as (update outbox_timer set due_at = now(),"
            + " decided_up_to = decided_up_to - interval '3 days' returning 1)"
            + " select pg_notify('outbox_outbox_timer', 'shop')::text from gone");
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
    assertThat(documented())
        .extracting(Documented::name, Documented::kind, Documented::tags, Documented::meaning)
        .containsExactlyElementsOf(
            Arrays.stream(TimerMeters.values())
                .map(
                    meter ->
                        org.assertj.core.groups.Tuple.tuple(
                            meter.id(), meter.kind(), meter.tags(), meter.description()))
                .toList());
  }

  @Test
  void registersWhatTheCodeDefinesAndShowsIt() {
    SimpleMeterRegistry registry = new SimpleMeterRegistry();
    run(registry);

    assertThat(
            registry.getMeters().stream()
                .map(Meter::getId)
                .map(
                    id ->
                        id.getName()
                            + " "
                            + id.getType().name().toLowerCase(Locale.ROOT)
                            + " "
                            + id.getBaseUnit()
                            + " "
                            + id.getTags().stream().map(Tag::getKey).sorted().toList()
                            + " "
                            + id.getDescription())
                .collect(Collectors.toSet()))
        .isEqualTo(
            Arrays.stream(TimerMeters.values())
                .map(
                    meter ->
                        meter.id()
                            + " "
                            + meter.kind()
                            + " "
                            + meter.unit()
                            + " "
                            + meter.tags().stream().sorted().toList()
                            + " "
                            + meter.description())
                .collect(Collectors.toSet()));
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

  @Test
  void isScrapedByPrometheusUnderTheNameInTheDocument() throws IOException {
    PrometheusMeterRegistry registry = new PrometheusMeterRegistry(PrometheusConfig.DEFAULT);
    run(registry);

    Set<String> scraped =
        registry
            .scrape()
            .lines()
            .filter(line -> line.startsWith("# TYPE outbox_timer_"))
            .map(line -> line.split(" ", -1)[2])
            .filter(name -> !name.endsWith("_max"))
            .collect(Collectors.toSet());

    assertThat(scraped)
        .isEqualTo(documented().stream().map(Documented::prometheus).collect(Collectors.toSet()));
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
