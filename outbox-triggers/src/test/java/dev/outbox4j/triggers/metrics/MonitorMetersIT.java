package dev.outbox4j.triggers.metrics;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import dev.outbox4j.RetryPolicy;
import dev.outbox4j.migrations.MonitorMigrations;
import dev.outbox4j.monitor.Json;
import dev.outbox4j.monitor.MonitorControl;
import dev.outbox4j.monitor.MonitorResult;
import dev.outbox4j.monitor.MonitorStatus;
import dev.outbox4j.monitor.MonitorType;
import dev.outbox4j.monitor.Monitors;
import dev.outbox4j.postgres.PostgresOutbox;
import dev.outbox4j.postgres.testing.PostgresExtension;
import dev.outbox4j.postgres.testing.TestDatabase;
import io.micrometer.core.instrument.Meter;
import io.micrometer.core.instrument.MeterRegistry;
import io.micrometer.core.instrument.simple.SimpleMeterRegistry;
import io.micrometer.prometheusmetrics.PrometheusConfig;
import io.micrometer.prometheusmetrics.PrometheusMeterRegistry;
import java.io.IOException;
import java.time.Duration;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;

/** The code, the registry, Prometheus and the document name the same meters, and they show it. */
@ExtendWith(PostgresExtension.class)
class MonitorMetersIT {
  private static final MonitorType<Json> WATCH =
      MonitorType.of("watch").retry(RetryPolicy.constant(Duration.ofMillis(1)).attempts(2));

  private final TestDatabase database;
  private Monitors monitors;

  MonitorMetersIT(TestDatabase database) {
    this.database = database;
    this.monitors =
        Monitors.builder(PostgresOutbox.on(database.plain(), database.table()), "shop")
            .on(WATCH, call -> MonitorResult.done())
            .build();
  }

  @BeforeEach
  void setUp() {
    database.migrate(MonitorMigrations.of("public", "outbox"), MonitorMigrations::migrate);
    database.update("truncate outbox, outbox_dlq, outbox_monitor, outbox_monitor_event");
  }

  @AfterEach
  void stop() {
    monitors.stop();
  }

  @Test
  void isDocumentedAsTheCodeDefinesIt() throws IOException {
    DocumentedMeters.assertDocumented("outbox.monitor.", MonitorMeters.values());
  }

  /** One instance ends when an attempt has failed, one has failed, and one is overdue. */
  private void run(MeterRegistry registry) {
    PostgresOutbox outbox = PostgresOutbox.on(database.pool(6), database.table());
    MonitorControl control = MonitorControl.of(outbox, "shop");
    control.start(MonitorType.of("other"), "overdue", Json.NULL);
    database.update("update outbox_monitor set due_at = now() - interval '1 hour'");
    database.update(
        "insert into outbox_monitor (application, id, type, status, input, ended_at)"
            + " values ('shop', 'broken', 'watch', 'failed', 'null', now())");
    monitors =
        Monitors.builder(outbox, "shop")
            .on(
                WATCH,
                call -> {
                  if (call.attempt() == 1) {
                    throw new IllegalStateException("no answer");
                  }
                  return MonitorResult.done();
                })
            .events(MicrometerMonitorMetrics.on(registry))
            .build();
    monitors.start();
    await().until(() -> monitors.health().lastLook().isPresent());
    control.start(WATCH, "x", Json.NULL);
    await().until(() -> registry.find("outbox.monitor.ended").counter() != null);
  }

  @Test
  void registersWhatTheCodeDefinesAndShowsIt() {
    SimpleMeterRegistry registry = new SimpleMeterRegistry();
    run(registry);

    DocumentedMeters.assertRegistered(registry, MonitorMeters.values());
    assertThat(registry.get("outbox.monitor.check").tag("outcome", "failure").timer().count())
        .isEqualTo(1);
    assertThat(registry.get("outbox.monitor.check").tag("outcome", "success").timer().count())
        .isEqualTo(1);
    assertThat(
            registry.get("outbox.monitor.ended").tag("outcome", "condition_met").counter().count())
        .isEqualTo(1);
    assertThat(registry.get("outbox.monitor.instances").gauges())
        .hasSize(MonitorStatus.values().length);
    assertThat(registry.get("outbox.monitor.instances").tag("status", "pending").gauge().value())
        .isEqualTo(1);
    assertThat(registry.get("outbox.monitor.alerts").tag("rule", "overdue").gauge().value())
        .isEqualTo(1);
    assertThat(registry.get("outbox.monitor.alerts").tag("rule", "failed").gauge().value())
        .isEqualTo(1);
    assertThat(registry.get("outbox.monitor.overdue").timeGauge().value(TimeUnit.SECONDS))
        .isBetween(3_600.0, 3_900.0);
    assertThat(registry.get("outbox.monitor.look").timer().count()).isPositive();
    assertThat(registry.get("outbox.monitor.repaired").counter().count()).isZero();
    monitors.stop();
    assertThat(registry.getMeters())
        .noneMatch(meter -> meter.getId().getType() == Meter.Type.GAUGE);
  }

  @Test
  void isScrapedByPrometheusUnderTheNameInTheDocument() throws IOException {
    PrometheusMeterRegistry registry = new PrometheusMeterRegistry(PrometheusConfig.DEFAULT);
    run(registry);

    DocumentedMeters.assertScraped(registry, "outbox.monitor.");
  }
}
