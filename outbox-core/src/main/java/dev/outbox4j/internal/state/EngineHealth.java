package dev.outbox4j.internal.state;

import dev.outbox4j.OutboxStoreException;
import dev.outbox4j.internal.Causes;
import dev.outbox4j.internal.OneLine;
import java.io.IOException;
import java.time.Clock;
import java.time.Duration;
import java.time.Instant;
import java.util.EnumMap;
import java.util.Locale;
import java.util.Map;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** What succeeded and failed last, for health, logs and observers. Thread-safe. */
public final class EngineHealth {
  private static final Logger log = LoggerFactory.getLogger(EngineHealth.class);

  /** What fails and works by turns is not told at each turn. */
  private static final Duration WARN_EVERY = Duration.ofSeconds(5);

  /** What can fail on its own, by its verb. */
  public enum Operation {
    CLAIM,
    ACK,
    RETRY,
    RESCHEDULE,
    DEAD_LETTER,
    RENEW,
    RELEASE,
    /** Of queues: whether there are any. */
    PAUSES,
    /** Of ordering keys, by dead letters that are not resolved. */
    HOLD,
    /** Of messages, which somebody else does not keep. */
    ORDER,
    /** Of a handler, with the write that settles its row. */
    TRANSACTION,
    /** Any of them, in the driver's hands. */
    STATEMENT;

    public String verb() {
      return name().toLowerCase(Locale.ROOT);
    }
  }

  private final String subscriber;
  private final Events events;
  private final Clock clock;
  private volatile @Nullable Instant lastClaimAt;
  private volatile @Nullable Failure lastFailure;
  private volatile boolean anyFailing;
  private final Map<Operation, Instant> warnedAt = new EnumMap<>(Operation.class); // by failing
  private final Map<Operation, Failure> failing = new EnumMap<>(Operation.class); // by itself
  private final Map<Operation, Instant> since = new EnumMap<>(Operation.class); // by failing

  /** When something failed, and what. */
  public record Failure(Instant at, String text) {}

  public EngineHealth(String subscriber, Events events) {
    this(subscriber, events, Clock.systemUTC());
  }

  EngineHealth(String subscriber, Events events, Clock clock) {
    this.subscriber = subscriber;
    this.events = events;
    this.clock = clock;
  }

  /**
   * A claim succeeded.
   *
   * @param all whether those of the other queues did, too
   */
  public void claimed(boolean all) {
    lastClaimAt = clock.instant();
    if (all) {
      succeeded(Operation.CLAIM);
    }
  }

  public void succeeded(Operation operation) {
    if (!anyFailing) {
      return;
    }
    synchronized (failing) {
      since.remove(operation);
      if (failing.remove(operation) != null) {
        log.info("[{}] {} works again", subscriber, operation.verb());
      }
      anyFailing = !failing.isEmpty();
    }
  }

  /** What has not failed for so long is not owed any more: another process may have done it. */
  public void forget(Operation operation, Duration quietFor) {
    if (!anyFailing) {
      return;
    }
    synchronized (failing) {
      Failure last = failing.get(operation);
      if (last == null || last.at().plus(quietFor).isAfter(clock.instant())) {
        return;
      }
    }
    succeeded(operation);
  }

  /**
   * A statement failed. Tells health, observers, and the log if it is the first failure in a row.
   */
  public void failed(Operation operation, Throwable cause) {
    String text = words(cause) + root(cause);
    boolean first = note(operation, text);
    events.storeFailed(operation.verb(), cause);
    if (first) {
      warn(operation, text, cause);
    } else {
      log.debug("[{}] {} failed again: {}", subscriber, operation.verb(), text);
    }
  }

  /**
   * Single rows keep an operation from being done; tells the log if it is the first time in a row.
   */
  public void held(Operation operation, String text) {
    if (note(operation, text)) {
      log.warn("[{}] {}: {}", subscriber, operation.verb(), text);
    }
  }

  private boolean note(Operation operation, String text) {
    Failure failure = new Failure(clock.instant(), operation.verb() + ": " + text);
    lastFailure = failure;
    synchronized (failing) {
      anyFailing = true;
      since.putIfAbsent(operation, failure.at());
      Instant warned = warnedAt.get(operation);
      boolean first =
          failing.put(operation, failure) == null
              && (warned == null || warned.plus(WARN_EVERY).isBefore(failure.at()));
      if (first) {
        warnedAt.put(operation, failure.at());
      }
      return first;
    }
  }

  /** Returns what a throwable says of itself; its getMessage() may throw. */
  public static String words(Throwable cause) {
    try {
      String message = cause.getMessage();
      return message == null ? cause.getClass().getName() : message;
    } catch (RuntimeException broken) {
      return cause.getClass().getName();
    }
  }

  /**
   * Returns what lies at the root of a failure of the store if that is the network, such as a host
   * that is not known; what the server said is in the words already.
   */
  private static String root(Throwable cause) {
    if (!(cause instanceof OutboxStoreException)) {
      return "";
    }
    try {
      return networkAtTheRootOf(cause);
    } catch (RuntimeException broken) { // of a cause's own methods
      return "";
    }
  }

  private static String networkAtTheRootOf(Throwable cause) {
    Throwable root = null;
    for (Throwable each : Causes.of(cause)) {
      root = each instanceof IOException ? each : root;
    }
    if (root == null || words(cause).contains(words(root))) {
      return "";
    }
    String name = root.getClass().getName();
    String said = words(root);
    return "; at the root: " + name + (said.equals(name) ? "" : ": " + OneLine.of(said));
  }

  /** Of what the store throws, the sentence says all; of anything else, the trace may. */
  private void warn(Operation operation, String text, Throwable cause) {
    String warning = "[{}] {} failed and will be tried again: {}";
    try {
      if (!(cause instanceof OutboxStoreException)) {
        log.warn(warning, subscriber, operation.verb(), text, cause);
        return;
      }
      log.debug("[{}] {} failed", subscriber, operation.verb(), cause);
    } catch (RuntimeException broken) {
      // its own methods throw
    }
    log.warn(warning, subscriber, operation.verb(), text);
  }

  /** Notes a failure that is not a statement's. */
  public void noted(String text) {
    lastFailure = new Failure(clock.instant(), text);
  }

  public @Nullable Instant lastClaimAt() {
    return lastClaimAt;
  }

  /** Returns what fails now, or what failed last. */
  public @Nullable Failure lastFailure() {
    if (anyFailing) {
      synchronized (failing) {
        Failure latest = null;
        for (Failure failure : failing.values()) {
          latest = latest == null || failure.at().isAfter(latest.at()) ? failure : latest;
        }
        if (latest != null) {
          return latest;
        }
      }
    }
    return lastFailure;
  }

  public boolean failing() {
    return anyFailing;
  }

  /** Returns when the first of what fails now began to fail; null if nothing does. */
  public @Nullable Instant failingSince() {
    if (!anyFailing) {
      return null;
    }
    synchronized (failing) {
      return since.values().stream().min(Instant::compareTo).orElse(null);
    }
  }
}
