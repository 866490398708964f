package dev.outbox4j.dlq;

import dev.outbox4j.OutboxStoreException;
import dev.outbox4j.OutboxStoreException.Fault;
import java.time.Duration;
import java.util.Optional;
import java.util.concurrent.TimeUnit;
import java.util.function.Supplier;

/**
 * How often something is tried that waits for others, and how long they go first between.
 * Immutable.
 *
 * @param attempts how often
 * @param pause how long after the first; twice as long after each further one
 * @param endedToo whether that is so of what the server ended, too
 */
record Patience(int attempts, Duration pause, boolean endedToo) {
  /** Longer than the lock is waited for: so others have most of the time. */
  static final Patience STANDARD = new Patience(5, Duration.ofMillis(500));

  private static final String ROLLED_BACK = "40";
  private static final String TOOK_TOO_LONG = "57014";

  Patience(int attempts, Duration pause) {
    this(attempts, pause, true);
  }

  /** What has become of a step. */
  enum Result {
    /** It was done. */
    DONE,
    /** Others had a lock, or won a race. */
    IN_THE_WAY,
    /** The server ended it the last time, since it took longer than it may, or was cancelled. */
    ENDED;

    /** Tells which of the others a failure is; empty if trying again would not help. */
    static Optional<Result> of(OutboxStoreException e) {
      if (has(e, TOOK_TOO_LONG)) {
        return Optional.of(ENDED);
      }
      return e.fault() == Fault.TIMEOUT || has(e, ROLLED_BACK)
          ? Optional.of(IN_THE_WAY)
          : Optional.empty();
    }

    private static boolean has(OutboxStoreException e, String state) {
      return e.sqlState().filter(found -> found.startsWith(state)).isPresent();
    }
  }

  /** A step that changes nothing if it throws, unless its outcome is unknown. */
  interface Step {
    void run();
  }

  /** {@return the same for one try} */
  Patience once() {
    return new Patience(1, pause, endedToo);
  }

  /** {@return the same for what would take as long again: others in the way are waited for} */
  Patience unlessEnded() {
    return new Patience(attempts, pause, false);
  }

  /**
   * Does it as soon as others allow.
   *
   * @return what has become of it the last time; an interrupt stays, and ends it
   */
  Result does(Step step) {
    try {
      return get(
          () -> {
            step.run();
            return Result.DONE;
          });
    } catch (OutboxStoreException e) {
      return Result.of(e).orElseThrow(() -> e);
    }
  }

  /**
   * Looks as soon as others allow.
   *
   * @return what it has found
   * @throws OutboxStoreException that of the last time; an interrupt stays, and ends it
   */
  <T> T get(Supplier<T> look) {
    long wait = pause.toNanos();
    for (int attempt = 1; ; attempt++) {
      try {
        return look.get();
      } catch (OutboxStoreException e) {
        Result result = Result.of(e).orElseThrow(() -> e);
        if (attempt == attempts || (result == Result.ENDED && !endedToo) || !slept(wait)) {
          throw e;
        }
      }
      wait *= 2;
    }
  }

  private static boolean slept(long nanos) {
    try {
      TimeUnit.NANOSECONDS.sleep(nanos);
      return true;
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      return false;
    }
  }
}
