package dev.outbox4j.postgres.notify.internal;

import java.time.Duration;
import java.util.Objects;

/**
 * How often a LISTEN connection is asked whether it lives, and how long the answer may take.
 *
 * @param interval 100 ms to 10 min
 * @param timeout 100 ms to 1 min
 */
public record Probe(Duration interval, Duration timeout) {
  private static final Duration MIN = Duration.ofMillis(100);

  /** Every 10 s, answered within 5 s: a dead connection is found within 15 s. */
  public static final Probe DEFAULT = new Probe(Duration.ofSeconds(10), Duration.ofSeconds(5));

  /** Checks the ranges. */
  public Probe {
    requireRange("probe interval", interval, Duration.ofMinutes(10));
    requireRange("probe timeout", timeout, Duration.ofMinutes(1));
  }

  private static void requireRange(String what, Duration value, Duration max) {
    Objects.requireNonNull(value, what);
    if (value.compareTo(MIN) < 0 || value.compareTo(max) > 0) {
      throw new IllegalArgumentException(
          what + " is " + value + "; it must be " + MIN + " to " + max);
    }
  }
}
