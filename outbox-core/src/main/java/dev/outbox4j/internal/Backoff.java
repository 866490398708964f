package dev.outbox4j.internal;

import dev.outbox4j.RetryPolicy;
import java.time.Duration;

/** The wait between tries against a database in trouble. Confined to one thread. */
public final class Backoff {
  private static final RetryPolicy CURVE =
      RetryPolicy.exponential(Duration.ofMillis(100)).jitter(0.3).max(Duration.ofSeconds(1));

  private int failures;

  /** Counts a failure and returns how long to wait. */
  public long nextNanos() {
    failures = Math.min(failures + 1, 16);
    return CURVE.delayAfter(failures, null).toNanos();
  }

  public void reset() {
    failures = 0;
  }
}
