package dev.outbox4j.triggers.metrics;

import dev.outbox4j.lock.LockEvents;
import dev.outbox4j.lock.LocksHealth;
import dev.outbox4j.lock.LocksHealth.Listener;
import dev.outbox4j.lock.LostLock;
import io.micrometer.core.instrument.MeterRegistry;
import java.time.Duration;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.Supplier;

/**
 * Counts and times what locks do in this process, in a Micrometer registry. Thread-safe. Use one
 * object per registry, for all applications: {@code builder.events(metrics)}.
 *
 * <p>All names begin with {@code outbox.lock.}; the metrics reference lists them. The tag {@code
 * lock} is the lock's name without its suffix. Gauges are removed when the locks stop.
 */
public final class MicrometerLockMetrics implements LockEvents {
  private final MeterRegistry registry;
  private final Map<String, Registrar> gauges = new ConcurrentHashMap<>();
  private final Registrar counts;

  private MicrometerLockMetrics(MeterRegistry registry) {
    this.registry = Objects.requireNonNull(registry, "registry");
    this.counts = new Registrar(registry);
  }

  /**
   * Returns an observer that writes to a registry.
   *
   * @param registry the registry; stays the caller's, who closes it
   * @return the observer
   */
  public static MicrometerLockMetrics on(MeterRegistry registry) {
    return new MicrometerLockMetrics(registry);
  }

  @Override
  public void started(String application, Supplier<LocksHealth> health) {
    stopped(application);
    Registrar registrar = new Registrar(registry);
    registrar.gauge(LockMeters.HEALTHY, () -> health.get().healthy() ? 1 : 0, application);
    registrar.gauge(LockMeters.HELD, () -> health.get().held().size(), application);
    registrar.gauge(
        LockMeters.LISTENERS,
        () -> health.get().listeners().stream().filter(Listener::holds).count(),
        application);
    registrar.gauge(LockMeters.WAITING, () -> health.get().waiting(), application);
    gauges.put(application, registrar);
  }

  @Override
  public void stopped(String application) {
    Registrar registrar = gauges.remove(application);
    if (registrar != null) {
      registrar.removeGauges();
    }
  }

  @Override
  public void acquired(String application, String lock, Duration waited) {
    counts.timer(LockMeters.ACQUIRE, application, lock).record(waited);
  }

  @Override
  public void timedOut(String application, String lock) {
    counts.counter(LockMeters.ACQUIRE_TIMEOUTS, application, lock).increment();
  }

  @Override
  public void lost(String application, String lock, LostLock lost) {
    counts.counter(LockMeters.LOST, application, lock).increment();
  }
}
