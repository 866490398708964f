package dev.outbox4j.benchmarks.spi;

import java.time.Duration;
import java.util.concurrent.locks.LockSupport;

/**
 * When a process works that shares its time with another one, by the clock of the machine: so that
 * what the machine does meanwhile concerns both alike.
 */
enum Share {
  THROUGHOUT,
  EVEN,
  ODD;

  private static final long STRETCH = Duration.ofMillis(500).toMillis();

  /** {@return the share of the time} */
  double of() {
    return this == THROUGHOUT ? 1 : 0.5;
  }

  /** Returns the first instant from a given one on at which a whole number of turns begins. */
  long begin(long fromMillis) {
    long turns = 2 * STRETCH;
    return (fromMillis + turns - 1) / turns * turns;
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

  private boolean mine(long millis) {
    return this == THROUGHOUT || (millis / STRETCH % 2 == 0) == (this == EVEN);
  }
}
