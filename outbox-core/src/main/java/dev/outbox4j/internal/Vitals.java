package dev.outbox4j.internal;

import dev.outbox4j.spi.SubscriberEvents;
import java.time.Instant;
import java.util.EnumSet;
import java.util.Set;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** What succeeded and failed last, for health, logs and observers. Thread-safe. */
final class Vitals {
  private static final Logger log = LoggerFactory.getLogger(Vitals.class);

  /** What can fail on its own, by its verb. */
  enum Operation {
    CLAIM,
    ACK,
    RETRY,
    RESCHEDULE,
    DEAD_LETTER,
    RENEW,
    RELEASE;

    String verb() {
      return name().toLowerCase(java.util.Locale.ROOT);
    }
  }

  private final String subscriber;
  private final GuardedEvents events;
  private volatile @Nullable Instant lastClaimAt;
  private volatile @Nullable Failure lastFailure;
  private volatile boolean anyFailing;
  private final Set<Operation> failing = EnumSet.noneOf(Operation.class); // guarded by itself

  /** When something failed, and what. */
  record Failure(Instant at, String text) {}

  Vitals(String subscriber, GuardedEvents events) {
    this.subscriber = subscriber;
    this.events = events;
  }

  void claimed() {
    lastClaimAt = Instant.now();
    succeeded(Operation.CLAIM);
  }

  void succeeded(Operation operation) {
    if (!anyFailing) {
      return;
    }
    synchronized (failing) {
      if (failing.remove(operation)) {
        log.info("[{}] {} works again", subscriber, operation.verb());
      }
      anyFailing = !failing.isEmpty();
    }
  }

  void failed(Operation operation, Throwable cause) {
    boolean first;
    synchronized (failing) {
      first = failing.add(operation);
      anyFailing = true;
    }
    String text = words(cause);
    lastFailure = new Failure(Instant.now(), operation.verb() + ": " + text);
    events.tell(observer -> observer.storeFailed(subscriber, operation.verb(), cause));
    if (first) {
      warn(operation, text, cause);
    } else {
      log.debug("[{}] {} failed again: {}", subscriber, operation.verb(), text);
    }
  }

  /** An exception of the store's or the pool's may fail even to say what it is. */
  static String words(Throwable cause) {
    try {
      String message = cause.getMessage();
      return message == null ? cause.getClass().getName() : message;
    } catch (RuntimeException speechless) {
      return cause.getClass().getName();
    }
  }

  private void warn(Operation operation, String text, Throwable cause) {
    String warning = "[{}] {} failed and will be tried again: {}";
    try {
      log.warn(warning, subscriber, operation.verb(), text, cause);
    } catch (RuntimeException speechless) {
      log.warn(warning, subscriber, operation.verb(), text);
    }
  }

  /** Notes a failure that is not a statement's. */
  void noted(String text) {
    lastFailure = new Failure(Instant.now(), text);
  }

  @Nullable Instant lastClaimAt() {
    return lastClaimAt;
  }

  @Nullable Failure lastFailure() {
    return lastFailure;
  }

  boolean failing() {
    return anyFailing;
  }

  /** Lets observers be told by the class that knows the delivery. */
  void tell(java.util.function.Consumer<SubscriberEvents> event) {
    events.tell(event);
  }
}
