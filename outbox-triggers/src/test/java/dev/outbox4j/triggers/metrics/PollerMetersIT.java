package dev.outbox4j.triggers.metrics;

import static org.assertj.core.api.Assertions.assertThat;

import dev.outbox4j.migrations.PollerMigrations;
import dev.outbox4j.poller.Audit;
import dev.outbox4j.poller.Cursor;
import dev.outbox4j.poller.Deletes;
import dev.outbox4j.poller.Poller;
import dev.outbox4j.poller.PollerControl;
import dev.outbox4j.poller.PollerHandler;
import dev.outbox4j.poller.PollerHealth;
import dev.outbox4j.poller.Pollers;
import dev.outbox4j.poller.Position;
import dev.outbox4j.poller.Source;
import dev.outbox4j.postgres.PostgresOutbox;
import dev.outbox4j.postgres.testing.PostgresExtension;
import dev.outbox4j.postgres.testing.TestDatabase;
import io.micrometer.core.instrument.MeterRegistry;
import io.micrometer.core.instrument.Timer;
import io.micrometer.core.instrument.simple.SimpleMeterRegistry;
import io.micrometer.prometheusmetrics.PrometheusConfig;
import io.micrometer.prometheusmetrics.PrometheusMeterRegistry;
import java.sql.Connection;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.DoublePredicate;
import org.awaitility.Awaitility;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;

/** The code, the registry, Prometheus and the document name the same meters, and they show it. */
@ExtendWith(PostgresExtension.class)
class PollerMetersIT {
  private final TestDatabase database;

  PollerMetersIT(TestDatabase database) {
    this.database = database;
  }

  @BeforeEach
  void setUp() {
    database.migrate(PollerMigrations.of("public", "outbox"), PollerMigrations::migrate);
    database.update("truncate outbox_poller");
    database.update("drop table if exists measured");
    database.update("create table measured (id bigint primary key)");
  }

  @Test
  void theDocumentNamesWhatIsRegisteredAndItShows() throws Exception {
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

  private static double gauge(MeterRegistry registry, String name) {
    return registry.get("outbox.poller." + name).gauge().value();
  }

  private static void awaitGauge(MeterRegistry registry, String name, DoublePredicate wanted) {
    Awaitility.await()
        .atMost(Duration.ofMinutes(1))
        .until(() -> wanted.test(gauge(registry, name)));
  }

  private static double failed(MeterRegistry registry, String timer) {
    Timer failed = registry.find("outbox.poller." + timer).tag("outcome", "failure").timer();
    return failed == null ? 0 : failed.count();
  }

  /** Its rows are read by a query that fails for some of them. */
  private static Poller measured() {
    return Poller.of(
            "measured",
            Source.query(
                "measured", "select m.id, 100 / (m.id - 100) as share from measured m", "id"),
            Cursor.sequence("id"),
            Deletes.ignored())
        .pollInterval(Duration.ofMillis(10))
        .retry(Duration.ofMillis(1), Duration.ofMillis(1))
        .lease(Duration.ofSeconds(3));
  }

  private Pollers start(MeterRegistry registry, Poller poller, PollerHandler handler) {
    PostgresOutbox outbox = PostgresOutbox.on(database.pool(4), database.table());
    Pollers pollers =
        Pollers.builder(outbox, "shop")
            .events(MicrometerPollerMetrics.on(registry))
            .on(poller, handler)
            .build();
    pollers.start();
    return pollers;
  }

  @Test
  void eachGaugeShowsWhatItSays() throws Exception {
    SimpleMeterRegistry first = new SimpleMeterRegistry();
    SimpleMeterRegistry second = new SimpleMeterRegistry();
    CountDownLatch running = new CountDownLatch(1);
    CountDownLatch go = new CountDownLatch(1);
    database.update("insert into measured values (1)");
    try (Pollers holder =
        start(
            first,
            measured(),
            (rows, context) -> {
              if (rows.get(0).cursor().equals(2L)) {
                running.countDown();
                go.await();
              }
            })) {
      awaitGauge(first, "lag", lag -> lag >= 0);
      awaitGauge(first, "since.success", since -> since > 0);
      database.update("insert into measured values (2)");
      running.await();
      assertThat(holder.health().pollers().get(0).sinceRenewal()).isPresent();
      try (Pollers standby = start(second, measured(), (rows, context) -> {})) {
        for (MeterRegistry each : List.of(first, second)) {
          awaitGauge(each, "lag", lag -> lag > 1);
          awaitGauge(each, "since.success", since -> since > 1);
        }
        awaitGauge(first, "staleness", since -> since > 1);
        awaitGauge(first, "since.renewal", since -> since > 0);
        assertThat(gauge(second, "staleness")).isLessThan(gauge(second, "since.success"));
        assertThat(gauge(second, "since.renewal")).isZero();
        assertThat(gauge(second, "active")).isZero();
        assertThat(standby.health().pollers().get(0).sinceRenewal()).isEmpty();
        go.countDown();
        for (MeterRegistry each : List.of(first, second)) {
          awaitGauge(each, "since.success", since -> since < 1);
        }
      }
    }
  }

  @Test
  void rowsThatAreHeldBackAndTicksThatFailAreShown() throws Exception {
    SimpleMeterRegistry registry = new SimpleMeterRegistry();
    try (Pollers pollers = start(registry, measured(), (rows, context) -> {})) {
      database.update("insert into measured values (1)");
      awaitGauge(registry, "lag", lag -> lag >= 0);
      try (Connection slow = database.plain().getConnection()) {
        slow.setAutoCommit(false);
        slow.createStatement().execute("insert into measured values (2)");
        database.update("insert into measured values (3)");
        awaitGauge(registry, "held.back", held -> held > 0.5);
        assertThat(gauge(registry, "lag")).isGreaterThan(0.5);
        slow.rollback();
      }
      awaitGauge(registry, "held.back", held -> held == 0);
      assertThat(pollers.health().healthy()).isTrue();

      database.update("insert into measured values (100)"); // of which no share can be read
      awaitGauge(registry, "failing", failing -> failing > 0);
      awaitGauge(registry, "lag", lag -> lag > 1);
      awaitGauge(registry, "since.success", since -> since > 1);
      assertThat(failed(registry, "fetch")).isPositive();
      assertThat(failed(registry, "commit")).isZero();
      database.update("delete from measured where id = 100");
      awaitGauge(registry, "since.success", since -> since < 1);

      database.update(
          "create function refuse() returns trigger language plpgsql as"
              + " $$ begin raise exception 'no'; end $$");
      database.update(
          "create trigger refuse before update of position_cursor on outbox_poller for each row"
              + " when (new.position_cursor <> old.position_cursor) execute function refuse()");
      database.update("insert into measured values (200)");
      Awaitility.await().until(() -> failed(registry, "commit") > 0);
      database.update("drop function refuse() cascade");
      awaitGauge(registry, "failing", failing -> failing == 0);
    }
  }

  /** Or nobody would hear of it but by the gauge of failures. */
  @Test
  void noSuccessIsShownWhileABatchWaitsForItsNextAttempt() {
    SimpleMeterRegistry registry = new SimpleMeterRegistry();
    database.update("insert into measured values (1)");
    Poller patient = measured().retry(Duration.ofHours(1), Duration.ofHours(1));
    try (Pollers pollers =
        start(
            registry,
            patient,
            (rows, context) -> {
              if (rows.get(0).cursor().equals(2L)) {
                throw new IllegalStateException("poison");
              }
            })) {
      awaitGauge(registry, "lag", lag -> lag >= 0);
      database.update("insert into measured values (2)");
      Awaitility.await()
          .until(
              () -> registry.find("outbox.poller.tick").tag("outcome", "waiting").timer() != null);

      awaitGauge(registry, "since.success", since -> since > 1);
      awaitGauge(registry, "lag", lag -> lag > 1);
      assertThat(gauge(registry, "staleness")).isLessThan(gauge(registry, "since.success"));
      assertThat(pollers.health().pollers().get(0).state()).isEqualTo(PollerHealth.State.STANDBY);
    }
  }
}
