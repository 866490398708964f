package dev.outbox4j.benchmarks.spi;

import java.time.Duration;
import java.util.concurrent.locks.LockSupport;

/**
 * When a process works that shares its time with another one, by the clock of the machine: so that
 * what the machine does meanwhile concerns both alike. They change places in the order of Thue and
 * Morse, so that nothing periodic always meets the same one.
 */
enum Share {
  THROUGHOUT,
  ONE,
  OTHER;

  private static final long STRETCH = Duration.ofMillis(500).toMillis();

  /** {@return the share of the time} */
  double of() {
    return this == THROUGHOUT ? 1 : 0.5;
  }

  /**
   * Returns the first instant from a given one on at which each has as many stretches before it.
   */
  long begin(long fromMillis) {
    long pair = 2 * STRETCH;
    return (fromMillis + pair - 1) / pair * pair;
  }

  /** Waits for a stretch of its own, if this is none; returns false if the end comes first. */
  boolean awaitTurn(long end) {
    long now = System.currentTimeMillis();
    while (now < end && !mine(now)) {
      LockSupport.parkUntil(Math.min(end, (now / STRETCH + 1) * STRETCH));
      now = System.currentTimeMillis();
    }
    return now < end;
  }

  boolean mine(long millis) {
    return this == THROUGHOUT || (Long.bitCount(millis / STRETCH) % 2 == 0) == (this == ONE);
  }
}
