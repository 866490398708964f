package dev.outbox4j.triggers.metrics;

import dev.outbox4j.monitor.MonitorAlert;
import dev.outbox4j.monitor.MonitorCall;
import dev.outbox4j.monitor.MonitorEvents;
import dev.outbox4j.monitor.MonitorOutcome;
import dev.outbox4j.monitor.MonitorStatus;
import dev.outbox4j.monitor.MonitorsHealth;
import io.micrometer.core.instrument.MeterRegistry;
import java.time.Duration;
import java.util.Locale;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/**
 * Counts and times what the monitors of a node do, in a Micrometer registry. Thread-safe. Use one
 * object per registry, for all applications: {@code builder.events(metrics)}.
 *
 * <p>All names begin with {@code outbox.monitor.}; the metrics reference lists them. The tag {@code
 * type} is the name of a monitor type; instances have no tag. Gauges are removed when the monitors
 * stop. What is on record is read every 30 s, by each node, so a dashboard writes {@code max by
 * (application, status)}.
 */
public final class MicrometerMonitorMetrics implements MonitorEvents {
  private final MeterRegistry registry;
  private final Map<String, Registrar> gauges = new ConcurrentHashMap<>();
  private final Registrar counts;

  private MicrometerMonitorMetrics(MeterRegistry registry) {
    this.registry = Objects.requireNonNull(registry, "registry");
    this.counts = new Registrar(registry);
  }

  /**
   * Returns an observer that writes to a registry.
   *
   * @param registry the registry; stays the caller's, who closes it
   * @return the observer
   */
  public static MicrometerMonitorMetrics on(MeterRegistry registry) {
    return new MicrometerMonitorMetrics(registry);
  }

  @Override
  public void started(String application, Supplier<MonitorsHealth> health) {
    stopped(application);
    Registrar registrar = new Registrar(registry);
    registrar.gauge(MonitorMeters.HEALTHY, () -> health.get().healthy() ? 1 : 0, application);
    for (MonitorStatus status : MonitorStatus.values()) {
      registrar.gauge(
          MonitorMeters.INSTANCES, () -> counted(health.get(), status), application, tag(status));
    }
    for (MonitorAlert.Rule rule : MonitorAlert.Rule.values()) {
      registrar.gauge(
          MonitorMeters.ALERTS,
          () -> health.get().alerts().stream().filter(alert -> alert.rule() == rule).count(),
          application,
          tag(rule));
    }
    registrar.timeGauge(
        MonitorMeters.OVERDUE, () -> longestOverdue(health.get()).toNanos(), application);
    gauges.put(application, registrar);
    counts.timer(MonitorMeters.LOOK, application); // from zero on
    counts.counter(MonitorMeters.LOOK_FAILURES, application);
    counts.counter(MonitorMeters.REPAIRED, application);
    for (Dropped why : Dropped.values()) {
      counts.counter(MonitorMeters.DROPPED, application, tag(why));
    }
  }

  /** NaN until they were counted. */
  private static double counted(MonitorsHealth health, MonitorStatus status) {
    Long count = health.counts().get(status);
    return count == null ? Double.NaN : count;
  }

  private static Duration longestOverdue(MonitorsHealth health) {
    return health.alerts().stream()
        .filter(alert -> alert.rule() == MonitorAlert.Rule.OVERDUE)
        .map(MonitorAlert::lasting)
        .max(Duration::compareTo)
        .orElse(Duration.ZERO);
  }

  private static String tag(Enum<?> value) {
    return value.name().toLowerCase(Locale.ROOT);
  }

  @Override
  public void stopped(String application) {
    Registrar registrar = gauges.remove(application);
    if (registrar != null) {
      registrar.removeGauges();
    }
  }

  @Override
  public void looked(String application, Duration took, @Nullable Throwable failure) {
    counts.timer(MonitorMeters.LOOK, application).record(took);
    if (failure != null) {
      counts.counter(MonitorMeters.LOOK_FAILURES, application).increment();
    }
  }

  @Override
  public void checked(
      String application, MonitorCall<?> call, Duration took, @Nullable Throwable failure) {
    counts
        .timer(
            MonitorMeters.CHECK, application, call.type(), failure == null ? "success" : "failure")
        .record(took);
  }

  @Override
  public void ended(
      String application,
      String type,
      String id,
      MonitorStatus status,
      @Nullable MonitorOutcome outcome) {
    counts
        .counter(MonitorMeters.ENDED, application, type, tag(outcome == null ? status : outcome))
        .increment();
  }

  @Override
  public void dropped(String application, String type, String id, Dropped why) {
    counts.counter(MonitorMeters.DROPPED, application, tag(why)).increment();
  }

  @Override
  public void repaired(String application, int instances) {
    counts.counter(MonitorMeters.REPAIRED, application).increment(instances);
  }
}
