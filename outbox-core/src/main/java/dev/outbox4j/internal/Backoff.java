package dev.outbox4j.internal;

import io.github.resilience4j.core.IntervalFunction;
import java.time.Duration;

/** The wait between tries against a database in trouble. Confined to one thread. */
final class Backoff {
  private static final Duration FIRST = Duration.ofMillis(100);
  private static final Duration LONGEST = Duration.ofSeconds(1);
  private static final IntervalFunction CURVE =
      IntervalFunction.ofExponentialRandomBackoff(FIRST, 2.0, 0.3, LONGEST);

  private int failures;

  /** Counts a failure and returns how long to wait. */
  long nextNanos() {
    failures = Math.min(failures + 1, 16);
    return Duration.ofMillis(Math.min(CURVE.apply(failures), LONGEST.toMillis())).toNanos();
  }

  void reset() {
    failures = 0;
  }
}
