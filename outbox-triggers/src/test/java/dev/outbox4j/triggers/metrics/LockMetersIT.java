package dev.outbox4j.triggers.metrics;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.awaitility.Awaitility.await;

import dev.outbox4j.lock.HeldLock;
import dev.outbox4j.lock.LockTimeoutException;
import dev.outbox4j.lock.Locks;
import dev.outbox4j.lock.LocksHealth;
import dev.outbox4j.lock.SingletonLock;
import dev.outbox4j.migrations.LockMigrations;
import dev.outbox4j.postgres.PostgresOutbox;
import dev.outbox4j.postgres.testing.PostgresExtension;
import dev.outbox4j.postgres.testing.TestDatabase;
import io.micrometer.prometheusmetrics.PrometheusConfig;
import io.micrometer.prometheusmetrics.PrometheusMeterRegistry;
import java.time.Duration;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;

/** The code, the registry, Prometheus and the document name the same meters, and they show it. */
@ExtendWith(PostgresExtension.class)
class LockMetersIT {
  /** A line such as: - `name`, `prometheus_name`, gauge, tags `a`, `b`: Meaning. */
  private final TestDatabase database;

  LockMetersIT(TestDatabase database) {
    this.database = database;
  }

  @Test
  void theDocumentNamesWhatIsRegisteredAndItShows() throws Exception {
    database.migrate(LockMigrations.of("public", "outbox"), LockMigrations::migrate);
    database.update("truncate outbox_lock");
    PrometheusMeterRegistry registry = new PrometheusMeterRegistry(PrometheusConfig.DEFAULT);
    Locks locks =
        Locks.builder(PostgresOutbox.on(database.plain(), database.table()), "shop")
            .events(MicrometerLockMetrics.on(registry))
            .build();
    locks.start();
    SingletonLock lock = locks.lock("one").suffix("a");
    HeldLock held = lock.acquire();
    assertThatThrownBy(() -> lock.acquisitionTimeout(Duration.ofMillis(1)).acquire())
        .isInstanceOf(LockTimeoutException.class);
    assertThat(registry.get("outbox.lock.held").gauge().value()).isEqualTo(1);
    database.update("update outbox_lock set owner = 'another', token = default");
    held.close();
    await().until(() -> registry.find("outbox.lock.lost").counter() != null);

    DocumentedMeters.assertRegistered(registry, LockMeters.values());
    assertThat(registry.get("outbox.lock.acquire").tag("lock", "one").timer().count()).isEqualTo(1);
    assertThat(registry.get("outbox.lock.acquire.timeouts").counter().count()).isEqualTo(1);
    assertThat(registry.get("outbox.lock.lost").counter().count()).isEqualTo(1);
    assertThat(registry.get("outbox.lock.held").gauge().value()).isZero();

    DocumentedMeters.assertDocumented("outbox.lock.", LockMeters.values());
    DocumentedMeters.assertScraped(registry, "outbox.lock.");

    assertThat(registry.get("outbox.lock.healthy").gauge().value()).isEqualTo(1);
    assertThat(registry.get("outbox.lock.listeners").gauge().value()).isZero();
    locks.listener("import", own -> () -> {}).start();
    await().until(() -> registry.get("outbox.lock.listeners").gauge().value() == 1);
    assertThat(locks.health().listeners())
        .containsExactly(new LocksHealth.Listener("import", true));
    locks.stop();
    assertThat(locks.health().listeners()).isEmpty();
    assertThat(registry.find("outbox.lock.held").gauge()).isNull();
    assertThat(registry.find("outbox.lock.listeners").gauge()).isNull();
  }
}
