package dev.outbox4j.metrics;

import dev.outbox4j.Delivery;
import dev.outbox4j.FailureReason;
import dev.outbox4j.SubscriberEvents;
import dev.outbox4j.SubscriberHealth;
import io.micrometer.core.instrument.MeterRegistry;
import java.time.Duration;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/**
 * Counts and times what subscribers do, in a Micrometer registry. Thread-safe. Use one object per
 * registry, for all its subscribers: {@code builder.events(metrics)}.
 *
 * <p>All names begin with {@code outbox.}; the metrics reference lists them with their tags and
 * units. A subscriber's meters are registered, at zero, when it starts, those of a queue and type
 * with its first message; what it was not built to do has none. When it stops its gauges are
 * removed; everything that counts stays as long as this object, so that the last increments can be
 * read, and goes on when a subscriber of the name starts again. Subscribers of one name share their
 * meters: counts add up, gauges are summed, and {@code outbox.healthy} and {@code
 * outbox.listener.up} are those of the worst.
 *
 * <p>The tag {@code type} is {@value #NO_TYPE} for messages without one. The first {@value
 * #MAX_TYPES} types of a subscriber have a value of their own; all later ones share {@value
 * #OTHER_TYPES}, so that a type made from data cannot flood the registry.
 */
public final class MicrometerMetrics implements SubscriberEvents {
  /** The value of the tag {@code type} for messages without a type: {@value}. */
  public static final String NO_TYPE = "none";

  /** The value of the tag {@code type} once {@link #MAX_TYPES} are known: {@value}. */
  public static final String OTHER_TYPES = "other";

  /** How many types of one subscriber are told apart: {@value}. */
  public static final int MAX_TYPES = 100;

  private final MeterRegistry registry;
  private final Map<String, SubscriberMeters> subscribers = new ConcurrentHashMap<>();

  private MicrometerMetrics(MeterRegistry registry) {
    this.registry = Objects.requireNonNull(registry, "registry");
  }

  /**
   * Returns an observer that writes to a registry.
   *
   * @param registry the registry; stays the caller's, who closes it
   * @return the observer
   */
  public static MicrometerMetrics on(MeterRegistry registry) {
    return new MicrometerMetrics(registry);
  }

  @Override
  public void started(String subscriber, Setup setup, Supplier<SubscriberHealth> health) {
    subscribers
        .computeIfAbsent(subscriber, name -> new SubscriberMeters(registry, name))
        .join(setup, health);
  }

  @Override
  public void stopped(String subscriber) {
    SubscriberMeters meters = subscribers.get(subscriber);
    if (meters != null) {
      meters.leave();
    }
  }

  @Override
  public void claimed(String subscriber, int rows, Duration took) {
    SubscriberMeters meters = subscribers.get(subscriber);
    if (meters == null) {
      return;
    }
    meters.claim.record(took);
    if (rows == 0) {
      meters.claimEmpty.increment();
    } else {
      meters.claimBatch.record(rows);
    }
  }

  @Override
  public void dispatched(String subscriber, Delivery delivery, Duration age) {
    MessageMeters meters = find(subscriber, delivery);
    if (meters != null) {
      meters.dispatchAge.record(age);
    }
  }

  @Override
  public void handled(
      String subscriber, Delivery delivery, Duration took, @Nullable Throwable failure) {
    MessageMeters meters = find(subscriber, delivery);
    if (meters != null) {
      (failure == null ? meters.succeeded : meters.failed).record(took);
    }
  }

  @Override
  public void acked(String subscriber, Delivery delivery) {
    MessageMeters meters = find(subscriber, delivery);
    if (meters != null) {
      meters.acked.increment();
    }
  }

  @Override
  public void retried(String subscriber, Delivery delivery, Duration delay) {
    MessageMeters meters = find(subscriber, delivery);
    if (meters != null) {
      meters.retried.increment();
    }
  }

  @Override
  public void rescheduled(String subscriber, Delivery delivery, Duration delay) {
    MessageMeters meters = find(subscriber, delivery);
    if (meters != null) {
      meters.rescheduled.increment();
    }
  }

  @Override
  public void deadLettered(
      String subscriber, Delivery delivery, FailureReason reason, boolean written) {
    MessageMeters meters = find(subscriber, delivery);
    if (meters != null) {
      meters.terminal(reason).increment();
      if (written) {
        meters.written(reason).increment();
      }
    }
  }

  @Override
  public void leaseLost(String subscriber, Delivery delivery, Phase phase) {
    SubscriberMeters meters = subscribers.get(subscriber);
    if (meters != null) {
      meters.lost(phase).increment();
    }
  }

  @Override
  public void outcomeUnknown(String subscriber, Delivery delivery, Phase phase) {
    SubscriberMeters meters = subscribers.get(subscriber);
    if (meters != null) {
      meters.unknown(phase).increment();
    }
  }

  @Override
  public void renewed(String subscriber, int rows) {
    SubscriberMeters meters = subscribers.get(subscriber);
    if (meters != null) {
      meters.renewed.increment(rows);
    }
  }

  @Override
  public void released(String subscriber, int rows) {
    SubscriberMeters meters = subscribers.get(subscriber);
    if (meters != null) {
      meters.released.increment(rows);
    }
  }

  @Override
  public void listenerConnected(String subscriber, boolean again) {
    SubscriberMeters meters = subscribers.get(subscriber);
    if (meters != null) {
      meters.counter(Meters.LISTENER_CONNECTS).increment();
      if (again) {
        meters.counter(Meters.LISTENER_RECONNECTS).increment();
      }
    }
  }

  @Override
  public void listenerDisconnected(String subscriber, Throwable cause) {
    SubscriberMeters meters = subscribers.get(subscriber);
    if (meters != null) {
      meters.counter(Meters.LISTENER_DISCONNECTS).increment();
    }
  }

  @Override
  public void storeFailed(String subscriber, String operation, Throwable cause) {
    SubscriberMeters meters = subscribers.get(subscriber);
    if (meters != null) {
      meters.failures(operation).increment();
    }
  }

  @Override
  public void handlerTimedOut(String subscriber, Delivery delivery) {
    MessageMeters meters = find(subscriber, delivery);
    if (meters != null) {
      meters.timedOut().increment();
    }
  }

  @Override
  public void drainTimedOut(String subscriber, int left) {
    SubscriberMeters meters = subscribers.get(subscriber);
    if (meters != null) {
      meters.drainTimeout.increment();
    }
  }

  private @Nullable MessageMeters find(String subscriber, Delivery delivery) {
    SubscriberMeters meters = subscribers.get(subscriber);
    return meters == null ? null : meters.of(delivery.queue(), delivery.type().orElse(null));
  }
}
