package dev.outbox4j.triggers.metrics;

import static org.assertj.core.api.Assertions.assertThat;

import dev.outbox4j.migrations.PollerMigrations;
import dev.outbox4j.poller.Audit;
import dev.outbox4j.poller.Cursor;
import dev.outbox4j.poller.Deletes;
import dev.outbox4j.poller.Poller;
import dev.outbox4j.poller.PollerControl;
import dev.outbox4j.poller.Pollers;
import dev.outbox4j.poller.Position;
import dev.outbox4j.poller.Source;
import dev.outbox4j.postgres.PostgresOutbox;
import dev.outbox4j.postgres.testing.PostgresExtension;
import dev.outbox4j.postgres.testing.TestDatabase;
import io.micrometer.prometheusmetrics.PrometheusConfig;
import io.micrometer.prometheusmetrics.PrometheusMeterRegistry;
import java.time.Duration;
import java.util.concurrent.atomic.AtomicBoolean;
import org.awaitility.Awaitility;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;

/** The code, the registry, Prometheus and the document name the same meters, and they show it. */
@ExtendWith(PostgresExtension.class)
class PollerMetersIT {
  private final TestDatabase database;

  PollerMetersIT(TestDatabase database) {
    this.database = database;
  }

  @Test
  void theDocumentNamesWhatIsRegisteredAndItShows() throws Exception {
    database.migrate(PollerMigrations.of("public", "outbox"), PollerMigrations::migrate);
    database.update("create table measured (id bigint primary key)");
    database.update("insert into measured values (1), (2), (3)");
    PrometheusMeterRegistry registry = new PrometheusMeterRegistry(PrometheusConfig.DEFAULT);
    AtomicBoolean fails = new AtomicBoolean(true);
    PostgresOutbox outbox = PostgresOutbox.on(database.plain(), database.table());
    Pollers pollers =
        Pollers.builder(outbox, "shop")
            .events(MicrometerPollerMetrics.on(registry))
            .on(
                Poller.of(
                        "measured",
                        Source.table("measured"),
                        Cursor.sequence("id"),
                        Deletes.ignored())
                    .pollInterval(Duration.ofMillis(10))
                    .retry(Duration.ofMillis(1), Duration.ofMillis(1))
                    .isolateAfter(2),
                (rows, context) -> {
                  if (fails.get() && rows.stream().anyMatch(row -> row.cursor().equals(2L))) {
                    throw new IllegalStateException(new IllegalArgumentException("poison"));
                  }
                })
            .build();
    pollers.start();
    Awaitility.await()
        .until(
            () ->
                registry.find("outbox.poller.events").counter() != null
                    && registry.get("outbox.poller.events").counter().count() == 2);

    DocumentedMeters.assertRegistered(registry, PollerMeters.values());
    assertThat(registry.get("outbox.poller.quarantined").counter().count()).isEqualTo(1);
    assertThat(
            registry
                .get("outbox.poller.failures")
                .tag("step", "handler")
                .tag("error", "IllegalArgumentException")
                .counter()
                .count())
        .isEqualTo(1);
    assertThat(registry.get("outbox.poller.duplicates").counter().count()).isPositive();
    assertThat(registry.get("outbox.poller.batch.size").summary().max()).isEqualTo(3);

    DocumentedMeters.assertDocumented("outbox.poller.", PollerMeters.values());
    DocumentedMeters.assertScraped(registry, "outbox.poller.");

    Awaitility.await().until(() -> registry.get("outbox.poller.healthy").gauge().value() == 1);
    assertThat(registry.get("outbox.poller.active").gauge().value()).isEqualTo(1);
    PollerControl control = PollerControl.of(outbox, "shop");
    control.pause("measured", Audit.of("ann", "a test"));
    Awaitility.await().until(() -> registry.get("outbox.poller.paused").gauge().value() == 1);
    control.resume("measured", Audit.of("ann", "a test"));
    control.set("measured", Position.after("text"), Audit.of("ann", "a test"));
    Awaitility.await().until(() -> registry.get("outbox.poller.failing").gauge().value() > 0);
    assertThat(registry.get("outbox.poller.healthy").gauge().value()).isZero();
    pollers.stop();
    assertThat(registry.find("outbox.poller.lag").gauge()).isNull();
  }
}
