package dev.outbox4j.dlq;

import dev.outbox4j.OutboxStoreException;
import dev.outbox4j.OutboxStoreException.Fault;
import java.time.Duration;
import java.util.Optional;
import java.util.concurrent.TimeUnit;

/**
 * How often something is tried that waits for others, and how long they go first between.
 * Immutable.
 *
 * @param attempts how often
 * @param pause how long after the first; twice as long after each further one
 */
record Patience(int attempts, Duration pause) {
  /** Longer than the lock is waited for: so others have most of the time. */
  static final Patience STANDARD = new Patience(5, Duration.ofMillis(500));

  private static final String ROLLED_BACK = "40";
  private static final String TOOK_TOO_LONG = "57014";

  /** What has become of a step. */
  enum Result {
    /** It was done. */
    DONE,
    /** Others had a lock each time, or the thread was interrupted. */
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
    return new Patience(1, pause);
  }

  /**
   * Does it as soon as others allow.
   *
   * @return what has become of it; after an interrupt, which stays, others were in the way
   */
  Result does(Step step) {
    long wait = pause.toNanos();
    Result last = Result.IN_THE_WAY;
    for (int attempt = 1; attempt <= attempts; attempt++) {
      try {
        step.run();
        return Result.DONE;
      } catch (OutboxStoreException e) {
        last = Result.of(e).orElseThrow(() -> e);
      }
      if (attempt < attempts) {
        try {
          TimeUnit.NANOSECONDS.sleep(wait);
        } catch (InterruptedException e) {
          Thread.currentThread().interrupt();
          return Result.IN_THE_WAY;
        }
        wait *= 2;
      }
    }
    return last;
  }
}
