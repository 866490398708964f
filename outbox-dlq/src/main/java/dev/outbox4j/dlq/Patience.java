package dev.outbox4j.dlq;

import dev.outbox4j.OutboxStoreException;
import dev.outbox4j.OutboxStoreException.Fault;
import java.time.Duration;
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

  /** A step that changes nothing if it throws, unless its outcome is unknown. */
  interface Step {
    void run();
  }

  /**
   * Does it as soon as others allow.
   *
   * @return whether it was done; false if others had the lock each time, or on an interrupt, which
   *     stays
   */
  boolean does(Step step) {
    long wait = pause.toNanos();
    for (int attempt = 1; attempt <= attempts; attempt++) {
      try {
        step.run();
        return true;
      } catch (OutboxStoreException e) {
        if (!isOfTheMoment(e)) {
          throw e;
        }
      }
      if (attempt < attempts) {
        try {
          TimeUnit.NANOSECONDS.sleep(wait);
        } catch (InterruptedException e) {
          Thread.currentThread().interrupt();
          return false;
        }
        wait *= 2;
      }
    }
    return false;
  }

  private static boolean isOfTheMoment(OutboxStoreException e) {
    return e.fault() == Fault.TIMEOUT
        || e.sqlState().filter(state -> state.startsWith(ROLLED_BACK)).isPresent();
  }
}
