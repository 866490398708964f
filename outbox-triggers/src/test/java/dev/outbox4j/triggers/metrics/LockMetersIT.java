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
import io.micrometer.core.instrument.Meter;
import io.micrometer.core.instrument.Tag;
import io.micrometer.prometheusmetrics.PrometheusConfig;
import io.micrometer.prometheusmetrics.PrometheusMeterRegistry;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import java.util.Set;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;

/** The code, the registry, Prometheus and the document name the same meters, and they show it. */
@ExtendWith(PostgresExtension.class)
class LockMetersIT {
  /** A line such as: - `name`, `prometheus_name`, gauge, tags `a`, `b`: Meaning. */
  private static final Pattern LINE =
      Pattern.compile(
          "- `(outbox\\.lock\\.[a-z.]+)`, `([a-z_]+)`, (\\w+), tags? ((?:`\\w+`(?:, )?)+): (.*)");

  private final TestDatabase database;

  LockMetersIT(TestDatabase database) {
    this.database = database;
  }

  @Test
  void theDocumentNamesWhatIsRegisteredAndItShows() throws Exception {
    LockMigrations.of("public", "outbox").migrate(database.plain());
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

    assertThat(
            registry.getMeters().stream()
                .map(Meter::getId)
                .map(
                    id ->
                        List.of(
                            id.getName(),
                            id.getTags().stream().map(Tag::getKey).toList(),
                            String.valueOf(id.getDescription())))
                .collect(Collectors.toSet()))
        .isEqualTo(
            Arrays.stream(LockMeters.values())
                .map(meter -> List.of(meter.id(), meter.tags(), meter.description()))
                .collect(Collectors.toSet()));
    assertThat(registry.get("outbox.lock.acquire").tag("lock", "one").timer().count()).isEqualTo(1);
    assertThat(registry.get("outbox.lock.acquire.timeouts").counter().count()).isEqualTo(1);
    assertThat(registry.get("outbox.lock.lost").counter().count()).isEqualTo(1);
    assertThat(registry.get("outbox.lock.held").gauge().value()).isZero();

    List<Matcher> documented = documented();
    assertThat(documented)
        .extracting(line -> line.group(1) + line.group(3) + line.group(5))
        .containsExactlyElementsOf(
            Arrays.stream(LockMeters.values())
                .map(meter -> meter.id() + meter.kind() + meter.description())
                .toList());
    Set<String> scraped =
        registry
            .scrape()
            .lines()
            .filter(line -> line.startsWith("# TYPE outbox_lock_"))
            .map(line -> line.split(" ", -1)[2])
            .filter(name -> !name.endsWith("_max"))
            .collect(Collectors.toSet());
    assertThat(scraped)
        .isEqualTo(documented.stream().map(line -> line.group(2)).collect(Collectors.toSet()));

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

  private static List<Matcher> documented() throws IOException {
    // an entry goes on in lines that are indented
    String text =
        Files.readString(Path.of("..", "docs", "metrics.md")).replaceAll("\n  (?=\\S)", " ");
    return text.lines().map(LINE::matcher).filter(Matcher::matches).toList();
  }
}
