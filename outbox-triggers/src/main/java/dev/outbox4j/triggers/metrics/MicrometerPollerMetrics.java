package dev.outbox4j.triggers.metrics;

import dev.outbox4j.internal.Causes;
import dev.outbox4j.internal.Durations;
import dev.outbox4j.poller.PollerEvents;
import dev.outbox4j.poller.PollerFailure;
import dev.outbox4j.poller.PollerHealth;
import dev.outbox4j.poller.PollersHealth;
import dev.outbox4j.poller.TickResult;
import io.micrometer.core.instrument.MeterRegistry;
import java.time.Duration;
import java.time.Instant;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.Function;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/**
 * Counts and times what the pollers of a node do, in a Micrometer registry. Thread-safe. Use one
 * object per registry, for all applications: {@code builder.events(metrics)}.
 *
 * <p>All names begin with {@code outbox.poller.}; the metrics reference lists them. The tag {@code
 * error} is the class of the cause behind all others, without its package; after {@value
 * #MAX_ERRORS} of them it is {@value #OTHER_ERRORS}. Gauges are removed when the pollers stop.
 * Nodes that stand by show the lag that is on record, so a dashboard writes {@code min by
 * (application, poller)}.
 */
public final class MicrometerPollerMetrics implements PollerEvents {
  /** How many classes of errors are told apart: {@value}. */
  public static final int MAX_ERRORS = 50;

  /** The value of the tag {@code error} of all others: {@value}. */
  public static final String OTHER_ERRORS = "other";

  private static final String SUCCESS = "success";
  private static final String FAILURE = "failure";

  private final MeterRegistry registry;
  private final Registrar counts;
  private final Map<String, Registrar> gauges = new ConcurrentHashMap<>();
  private final Set<String> errors = ConcurrentHashMap.newKeySet();

  private MicrometerPollerMetrics(MeterRegistry registry) {
    this.registry = Objects.requireNonNull(registry, "registry");
    this.counts = new Registrar(registry);
  }

  /**
   * Returns an observer that writes to a registry.
   *
   * @param registry the registry; stays the caller's, who closes it
   * @return the observer
   */
  public static MicrometerPollerMetrics on(MeterRegistry registry) {
    return new MicrometerPollerMetrics(registry);
  }

  @Override
  public void started(String application, Supplier<PollersHealth> health) {
    stopped(application);
    Registrar registrar = new Registrar(registry);
    registrar.gauge(PollerMeters.HEALTHY, () -> health.get().healthy() ? 1 : 0, application);
    List<String> names = health.get().pollers().stream().map(PollerHealth::name).toList();
    names.forEach(poller -> register(registrar, application, poller, health));
    gauges.put(application, registrar);
  }

  private static void register(
      Registrar registrar, String application, String poller, Supplier<PollersHealth> health) {
    Function<Function<PollerHealth, Number>, Supplier<Number>> of =
        value ->
            () ->
                health.get().pollers().stream()
                    .filter(each -> each.name().equals(poller))
                    .findFirst()
                    .map(value)
                    .orElse(0);
    registrar.gauge(
        PollerMeters.ACTIVE,
        of.apply(each -> each.state() == PollerHealth.State.ACTIVE ? 1 : 0),
        application,
        poller);
    registrar.gauge(
        PollerMeters.PAUSED,
        of.apply(each -> each.state() == PollerHealth.State.PAUSED ? 1 : 0),
        application,
        poller);
    registrar.timeGauge(
        PollerMeters.FAILING, of.apply(each -> since(each.failingSince())), application, poller);
    registrar.timeGauge(
        PollerMeters.LAG,
        of.apply(each -> each.lag().<Number>map(Durations::saturatedNanos).orElse(Double.NaN)),
        application,
        poller);
    registrar.timeGauge(
        PollerMeters.HELD_BACK,
        of.apply(
            each -> each.heldBack().map(held -> Durations.saturatedNanos(held.delay())).orElse(0L)),
        application,
        poller);
    registrar.timeGauge(
        PollerMeters.SINCE_SUCCESS,
        of.apply(each -> since(each.lastSuccess())),
        application,
        poller);
    registrar.timeGauge(
        PollerMeters.STALENESS, of.apply(each -> since(each.lastTick())), application, poller);
    registrar.timeGauge(
        PollerMeters.SINCE_RENEWAL,
        of.apply(each -> each.sinceRenewal().map(Durations::saturatedNanos).orElse(0L)),
        application,
        poller);
  }

  private static long since(Optional<Instant> then) {
    return then.map(
            time -> Math.max(0, Durations.saturatedNanos(Duration.between(time, Instant.now()))))
        .orElse(0L);
  }

  @Override
  public void stopped(String application) {
    Registrar registrar = gauges.remove(application);
    if (registrar != null) {
      registrar.removeGauges();
    }
  }

  @Override
  public void ticked(String application, String poller, Duration took, TickResult result) {
    counts
        .timer(
            PollerMeters.TICK,
            application,
            poller,
            result.outcome().name().toLowerCase(Locale.ROOT))
        .record(took);
  }

  @Override
  public void fetched(
      String application, String poller, Duration took, int rows, @Nullable Throwable failure) {
    counts.timer(PollerMeters.FETCH, application, poller, outcome(failure)).record(took);
  }

  @Override
  public void handled(
      String application,
      String poller,
      Duration took,
      int rows,
      boolean repeated,
      @Nullable Throwable failure) {
    counts.timer(PollerMeters.HANDLER, application, poller, outcome(failure)).record(took);
    counts.summary(PollerMeters.BATCH_SIZE, application, poller).record(rows);
    if (repeated) {
      counts.counter(PollerMeters.DUPLICATES, application, poller).increment(rows);
    }
  }

  @Override
  public void committed(
      String application, String poller, Duration took, int rows, @Nullable Throwable failure) {
    counts.timer(PollerMeters.COMMIT, application, poller, outcome(failure)).record(took);
    if (failure == null) {
      counts.counter(PollerMeters.EVENTS, application, poller).increment(rows);
    }
  }

  @Override
  public void quarantined(String application, String poller, int rows) {
    counts.counter(PollerMeters.QUARANTINED, application, poller).increment(rows);
  }

  @Override
  public void failed(String application, String poller, PollerFailure step, Throwable failure) {
    counts
        .counter(
            PollerMeters.FAILURES,
            application,
            poller,
            step.name().toLowerCase(Locale.ROOT),
            error(failure))
        .increment();
  }

  private String error(Throwable failure) {
    List<Throwable> causes = Causes.of(failure);
    String name = causes.get(causes.size() - 1).getClass().getSimpleName();
    if (errors.contains(name) || (errors.size() < MAX_ERRORS && errors.add(name))) {
      return name;
    }
    return OTHER_ERRORS;
  }

  private static String outcome(@Nullable Throwable failure) {
    return failure == null ? SUCCESS : FAILURE;
  }
}
