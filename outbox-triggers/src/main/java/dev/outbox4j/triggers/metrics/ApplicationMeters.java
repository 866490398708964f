package dev.outbox4j.triggers.metrics;

import dev.outbox4j.timer.RunStatus;
import dev.outbox4j.timer.TimerAlert;
import dev.outbox4j.timer.TimerStatus;
import dev.outbox4j.timer.TimersHealth;
import io.micrometer.core.instrument.MeterRegistry;
import java.time.Duration;
import java.util.HashSet;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.function.Supplier;
import java.util.function.ToDoubleFunction;
import java.util.stream.Collectors;

/** The meters of an application's timers on this node. Thread-safe. */
final class ApplicationMeters {
  private final Registrar registrar;
  private final String application;
  private final Supplier<TimersHealth> health;
  private final Set<String> own = new HashSet<>(); // guarded by this
  private final Set<String> shownTags = new HashSet<>(); // guarded by this
  private List<TimerStatus> read = List.of(); // guarded by this
  private boolean removed; // guarded by this
  private volatile Map<String, Shown> shown = Map.of();

  ApplicationMeters(MeterRegistry registry, String application, Supplier<TimersHealth> health) {
    this.registrar = new Registrar(registry);
    this.application = application;
    this.health = health;
    registrar.timer(TimerMeters.TICK, application);
    registrar.counter(TimerMeters.TICK_FAILURES, application);
  }

  synchronized void registerGauges() {
    registrar.gauge(TimerMeters.HEALTHY, () -> health.get().healthy() ? 1 : 0, application);
    registrar.timeGauge(
        TimerMeters.CLOCK_OFFSET, () -> health.get().clockOffset().toNanos(), application);
    for (TimerAlert.Rule rule : TimerAlert.Rule.values()) {
      registrar.gauge(
          TimerMeters.ALERTS,
          () -> health.get().alerts().stream().filter(alert -> alert.rule() == rule).count(),
          application,
          rule.name().toLowerCase(Locale.ROOT));
    }
  }

  synchronized void removeGauges() {
    removed = true;
    registrar.removeGauges();
  }

  void ticked(Duration took, boolean succeeded) {
    registrar.timer(TimerMeters.TICK, application).record(took);
    if (!succeeded) {
      registrar.counter(TimerMeters.TICK_FAILURES, application).increment();
    }
    show(health.get().timers());
  }

  private synchronized void show(List<TimerStatus> onRecord) {
    if (removed || onRecord == read) {
      return;
    }
    read = onRecord;
    shown =
        onRecord.stream()
            .collect(Collectors.toMap(status -> tag(status.name()), Shown::of, Shown::with));
    for (String tag : shown.keySet()) {
      if (shownTags.add(tag)) {
        registrar.counter(TimerMeters.SKIPPED, application, tag); // from zero on
        registrar.counter(TimerMeters.TERMINATED, application, tag);
        registerGauges(tag);
      }
    }
  }

  /** Whose value of the tag a timer has, which it keeps. */
  private synchronized String tag(String name) {
    if (own.contains(name)) {
      return name;
    }
    if (own.size() < MicrometerTimerMetrics.MAX_TIMERS) {
      own.add(name);
      return name;
    }
    return MicrometerTimerMetrics.OTHER_TIMERS;
  }

  private void registerGauges(String tag) {
    registrar.timeGauge(TimerMeters.OVERDUE, () -> shown(tag, Shown::overdue), application, tag);
    registrar.timeGauge(
        TimerMeters.SINCE_SUCCESS, () -> shown(tag, Shown::sinceSuccess), application, tag);
    registrar.gauge(TimerMeters.WAITING, () -> shown(tag, Shown::waiting), application, tag);
    registrar.gauge(TimerMeters.BEGUN, () -> shown(tag, Shown::begun), application, tag);
    registrar.gauge(TimerMeters.NOT_RUN, () -> shown(tag, Shown::notRun), application, tag);
    registrar.gauge(TimerMeters.PAUSED, () -> shown(tag, Shown::paused), application, tag);
  }

  /** NaN if it is not on record any more. */
  private double shown(String tag, ToDoubleFunction<Shown> value) {
    Shown found = shown.get(tag);
    return found == null ? Double.NaN : value.applyAsDouble(found);
  }

  void ended(String name, RunStatus status, long runs) {
    if (status == RunStatus.SKIPPED || status == RunStatus.TERMINATED) { // others by their messages
      TimerMeters meter =
          status == RunStatus.SKIPPED ? TimerMeters.SKIPPED : TimerMeters.TERMINATED;
      registrar.counter(meter, application, tag(name)).increment((double) runs);
    }
  }

  void late(String name, Duration lateness) {
    registrar.timer(TimerMeters.LATENESS, application, tag(name)).record(lateness);
  }

  void handled(String name, Duration took, boolean succeeded) {
    registrar
        .timer(TimerMeters.RUN, application, tag(name), succeeded ? "success" : "failure")
        .record(took);
  }
}
