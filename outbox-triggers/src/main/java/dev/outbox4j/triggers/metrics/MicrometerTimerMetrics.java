package dev.outbox4j.triggers.metrics;

import dev.outbox4j.timer.RunStatus;
import dev.outbox4j.timer.TimerEvents;
import dev.outbox4j.timer.TimerRun;
import dev.outbox4j.timer.TimersHealth;
import io.micrometer.core.instrument.MeterRegistry;
import java.time.Duration;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/**
 * Counts and times what the timers of a node do, in a Micrometer registry. Thread-safe. Use one
 * object per registry, for all applications: {@code builder.events(metrics)}.
 *
 * <p>All names begin with {@code outbox.timer.}; the metrics reference lists them. The first
 * {@value #MAX_TIMERS} timers of an application, by their names, have a value of the tag {@code
 * timer} of their own; the others share {@value #OTHER_TIMERS}, where counts add up and times are
 * the longest. Gauges are removed when the timers stop. What is on record is read every 30 s, by
 * each node, so a dashboard writes {@code max by (application, timer)}.
 */
public final class MicrometerTimerMetrics implements TimerEvents {
  /** How many timers of an application are told apart: {@value}. */
  public static final int MAX_TIMERS = 100;

  /** The value of the tag {@code timer} of all others: {@value}. */
  public static final String OTHER_TIMERS = "other";

  private final MeterRegistry registry;
  private final Map<String, ApplicationMeters> applications = new ConcurrentHashMap<>();

  private MicrometerTimerMetrics(MeterRegistry registry) {
    this.registry = Objects.requireNonNull(registry, "registry");
  }

  /**
   * Returns an observer that writes to a registry.
   *
   * @param registry the registry; stays the caller's, who closes it
   * @return the observer
   */
  public static MicrometerTimerMetrics on(MeterRegistry registry) {
    return new MicrometerTimerMetrics(registry);
  }

  @Override
  public void started(String application, Supplier<TimersHealth> health) {
    ApplicationMeters meters = new ApplicationMeters(registry, application, health);
    ApplicationMeters before = applications.put(application, meters);
    if (before != null) {
      before.removeGauges();
    }
    meters.registerGauges();
  }

  @Override
  public void stopped(String application) {
    ApplicationMeters meters = applications.remove(application);
    if (meters != null) {
      meters.removeGauges();
    }
  }

  @Override
  public void ticked(String application, Duration took, @Nullable Throwable failure) {
    ApplicationMeters meters = applications.get(application);
    if (meters != null) {
      meters.ticked(took, failure == null);
    }
  }

  @Override
  public void ended(String application, String timer, RunStatus status, long runs) {
    ApplicationMeters meters = applications.get(application);
    if (meters != null) {
      meters.ended(timer, status, runs);
    }
  }

  @Override
  public void began(String application, TimerRun run) {
    ApplicationMeters meters = applications.get(application);
    if (meters != null && run.attempt() == 1) {
      meters.late(run.timer().name(), run.lateness());
    }
  }

  @Override
  public void handled(
      String application, TimerRun run, Duration took, @Nullable Throwable failure) {
    ApplicationMeters meters = applications.get(application);
    if (meters != null) {
      meters.handled(run.timer().name(), took, failure == null);
    }
  }
}
