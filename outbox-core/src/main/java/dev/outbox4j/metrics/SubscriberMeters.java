package dev.outbox4j.metrics;

import dev.outbox4j.SubscriberEvents.Phase;
import dev.outbox4j.SubscriberEvents.Setup;
import dev.outbox4j.SubscriberHealth;
import dev.outbox4j.SubscriberHealth.Order;
import dev.outbox4j.SubscriberState;
import io.micrometer.core.instrument.Counter;
import io.micrometer.core.instrument.DistributionSummary;
import io.micrometer.core.instrument.MeterRegistry;
import io.micrometer.core.instrument.Timer;
import java.util.HashSet;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.function.Supplier;
import java.util.function.ToLongFunction;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** The meters of all subscribers of one name. Thread-safe; finding a known meter takes no lock. */
final class SubscriberMeters {
  private static final Logger log = LoggerFactory.getLogger(SubscriberMeters.class);

  final Timer claim;
  final Counter claimEmpty;
  final DistributionSummary claimBatch;
  final Counter renewed;
  final Counter released;
  final Counter drainTimeout;

  private final String name;
  private final Registrar registrar; // guarded by this
  private final List<Supplier<SubscriberHealth>> healths = new CopyOnWriteArrayList<>();
  private final Map<String, Map<String, MessageMeters>> messages = new ConcurrentHashMap<>();
  private final Map<String, Counter> failures = new ConcurrentHashMap<>();
  private final Map<Phase, Counter> lost = new ConcurrentHashMap<>();
  private final Map<Phase, Counter> unknown = new ConcurrentHashMap<>();
  private final Set<Setup> setups = new HashSet<>(); // guarded by this
  private final Set<String> types = ConcurrentHashMap.newKeySet();
  private int running; // guarded by this

  SubscriberMeters(MeterRegistry registry, String name) {
    this.name = name;
    registrar = new Registrar(registry);
    claim = registrar.timer(Meters.CLAIM, name);
    claimEmpty = registrar.counter(Meters.CLAIM_EMPTY, name);
    claimBatch = registrar.summary(Meters.CLAIM_BATCH, name);
    renewed = registrar.counter(Meters.RENEWED, name);
    released = registrar.counter(Meters.RELEASED, name);
    drainTimeout = registrar.counter(Meters.DRAIN_TIMEOUT, name);
  }

  /** Registers what can happen in a subscriber that is set up so. */
  private void expect(Setup setup) {
    if (setup.listens()) {
      counter(Meters.LISTENER_CONNECTS);
      counter(Meters.LISTENER_RECONNECTS);
      counter(Meters.LISTENER_DISCONNECTS);
    }
    failures("claim");
    for (Phase phase : Phase.values()) {
      if (phase == Phase.DEAD_LETTER && !setup.keepsDeadLetters()) {
        continue;
      }
      lost(phase);
      if (phase != Phase.DISPATCH) { // no statement
        failures(tag(phase));
        if (phase != Phase.RENEW) { // a renewal is said again, whatever became of it
          unknown(phase);
        }
      }
    }
    messages.values().forEach(types -> types.values().forEach(each -> each.expect(setup)));
  }

  private static String tag(Phase phase) {
    return phase.name().toLowerCase(Locale.ROOT);
  }

  private void registerGauges() {
    registrar.gauge(Meters.HEALTHY, this::healthy, name);
    registrar.gauge(Meters.IN_FLIGHT, () -> sum(SubscriberHealth::inFlight), name);
    registrar.gauge(Meters.RUNNING, () -> sum(SubscriberHealth::running), name);
    registrar.timeGauge(Meters.OLDEST_IN_FLIGHT, this::oldestNanos, name);
    registrar.timeGauge(Meters.STUCK, this::stuckNanos, name);
  }

  /** Gauges that only some subscribers have. */
  private void registerGauges(Setup setup) {
    if (setup.listens() && !registrar.hasGauge(Meters.LISTENER_UP)) {
      registrar.gauge(Meters.LISTENER_UP, this::listenerUp, name);
    }
    if (setup.keepsDeadLetters() && !registrar.hasGauge(Meters.DLQ_WAITING)) {
      registrar.gauge(Meters.DLQ_WAITING, () -> sum(SubscriberHealth::deadLettersWaiting), name);
    }
  }

  /** A subscriber of this name was started; registers the gauges that are not there yet. */
  synchronized void join(Setup setup, Supplier<SubscriberHealth> health) {
    running++;
    healths.add(health);
    if (setups.add(setup)) {
      expect(setup);
    }
    if (running == 1) {
      if (registrar.isTaken(Meters.HEALTHY, name)) {
        log.warn(
            "[{}] another MicrometerMetrics has registered a subscriber of this name in the same"
                + " registry: the gauges show that one, and go when it stops. Use one"
                + " MicrometerMetrics for a registry, or another name for one of the subscribers",
            name);
      }
      registerGauges();
    }
    registerGauges(setup);
    if (health.get().order().isPresent() && !registrar.hasGauge(Meters.ORDER_BUCKETS)) {
      registrar.gauge(Meters.ORDER_BUCKETS, () -> sumOfOrder(Order::buckets), name);
      registrar.gauge(Meters.ORDER_BLOCKED_KEYS, () -> sumOfOrder(Order::blockedKeys), name);
      registrar.gauge(Meters.ORDER_KEYS_ON_HOLD, () -> sumOfOrder(Order::keysOnHold), name);
    }
    if (health.get().pausedQueues().isPresent() && !registrar.hasGauge(Meters.PAUSED_QUEUES)) {
      registrar.gauge(Meters.PAUSED_QUEUES, this::pausedQueues, name);
    }
  }

  /**
   * A subscriber of this name has stopped; removes the gauges with the last one. Counters, timers
   * and the summary stay: their last increments are yet to be scraped.
   */
  synchronized void leave() {
    if (running == 0) {
      return; // never told of its start
    }
    running--;
    if (running == 0) {
      registrar.removeGauges();
      healths.clear();
    } else {
      healths.removeIf(health -> health.get().state() == SubscriberState.STOPPED);
    }
  }

  /** Finds the meters of a message. */
  MessageMeters of(String queue, @Nullable String type) {
    String known = type == null || type.isEmpty() ? MicrometerMetrics.NO_TYPE : type;
    Map<String, MessageMeters> ofQueue = messages.get(queue);
    if (ofQueue != null) {
      MessageMeters meters = ofQueue.get(known);
      if (meters == null && types.size() >= MicrometerMetrics.MAX_TYPES && !types.contains(known)) {
        meters = ofQueue.get(MicrometerMetrics.OTHER_TYPES);
      }
      if (meters != null) {
        return meters;
      }
    }
    return admit(queue, known);
  }

  private synchronized MessageMeters admit(String queue, String type) {
    boolean room = types.contains(type) || types.size() < MicrometerMetrics.MAX_TYPES;
    if (room) {
      types.add(type);
    }
    return messages
        .computeIfAbsent(queue, key -> new ConcurrentHashMap<>())
        .computeIfAbsent(
            room ? type : MicrometerMetrics.OTHER_TYPES,
            key -> {
              MessageMeters meters = new MessageMeters(registrar, name, queue, key);
              setups.forEach(meters::expect);
              return meters;
            });
  }

  /** Finds a counter of the subscriber's own. */
  Counter counter(Meters meter) {
    return registrar.counter(meter, name);
  }

  Counter failures(String operation) {
    return failures.computeIfAbsent(
        operation, key -> registrar.counter(Meters.STORE_FAILURES, name, key));
  }

  Counter lost(Phase phase) {
    return lost.computeIfAbsent(phase, key -> registrar.counter(Meters.LEASE_LOST, name, tag(key)));
  }

  Counter unknown(Phase phase) {
    return unknown.computeIfAbsent(
        phase, key -> registrar.counter(Meters.OUTCOME_UNKNOWN, name, tag(key)));
  }

  private Stream<SubscriberHealth> alive() {
    return healths.stream()
        .distinct() // one that has started again before its stop was told of is in twice
        .map(Supplier::get)
        .filter(health -> health.state() != SubscriberState.STOPPED);
  }

  private long sum(ToLongFunction<SubscriberHealth> value) {
    return alive().mapToLong(value).sum();
  }

  private long sumOfOrder(ToLongFunction<Order> value) {
    return alive().flatMap(health -> health.order().stream()).mapToLong(value).sum();
  }

  private long pausedQueues() {
    return alive()
        .flatMap(health -> health.pausedQueues().stream().flatMap(Set::stream))
        .distinct()
        .count();
  }

  private long oldestNanos() {
    return alive()
        .flatMap(health -> health.oldest().stream())
        .mapToLong(oldest -> oldest.age().toNanos())
        .max()
        .orElse(0);
  }

  private long stuckNanos() {
    return alive().mapToLong(health -> health.stuckFor().toNanos()).max().orElse(0);
  }

  private int healthy() {
    List<SubscriberHealth> all = alive().toList();
    return !all.isEmpty() && all.stream().allMatch(SubscriberHealth::healthy) ? 1 : 0;
  }

  private double listenerUp() {
    List<SubscriberHealth.Listener> listeners =
        alive()
            .map(SubscriberHealth::listener)
            .filter(listener -> listener != SubscriberHealth.Listener.NONE)
            .toList();
    if (listeners.isEmpty()) {
      return Double.NaN;
    }
    return listeners.contains(SubscriberHealth.Listener.DOWN) ? 0 : 1;
  }
}
