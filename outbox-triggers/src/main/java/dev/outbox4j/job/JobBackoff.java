package dev.outbox4j.job;

import dev.outbox4j.RetryPolicy;
import java.time.Duration;
import java.util.concurrent.ThreadLocalRandom;

/**
 * How long a job waits after a failed attempt: the base, doubled with each failure up to a cap, and
 * a random time on top. The n-th failure is followed by {@code min(cap, base x 2^(n-1)) + U(0,
 * jitter)}.
 *
 * @param base the wait after the first failure, without the random time; 1 ms to 365 days
 * @param cap the longest wait, without the random time; not below the base, at most 365 days
 * @param jitter the longest random time, zero to 365 days
 */
public record JobBackoff(Duration base, Duration cap, Duration jitter) {
  private static final Duration LONGEST = RetryPolicy.MAX_DELAY;

  /**
   * Checks the times.
   *
   * @throws IllegalArgumentException if one is out of range
   */
  public JobBackoff {
    Ranges.require("base", base, Duration.ofMillis(1), LONGEST);
    Ranges.require("cap", cap, base, LONGEST);
    Ranges.require("jitter", jitter, Duration.ZERO, LONGEST);
  }

  /** {@return the default: base 0.75 s, cap 6 s, jitter 0.2 s} */
  public static JobBackoff standard() {
    return new JobBackoff(Duration.ofMillis(750), Duration.ofSeconds(6), Duration.ofMillis(200));
  }

  /**
   * Returns the wait after a failure.
   *
   * @param failure which one it is, from 1
   * @param share how much of the jitter is added, 0 to 1
   * @return the wait, in whole milliseconds
   */
  Duration after(int failure, double share) {
    double doubled = base.toMillis() * Math.pow(2, failure - 1.0);
    return Duration.ofMillis(
        (long) Math.min((double) cap.toMillis(), doubled) + Math.round(jitter.toMillis() * share));
  }

  /** As a retry policy that gives up when the budget is spent. */
  RetryPolicy policy(int budget) {
    return RetryPolicy.custom(
            (attempt, failure) -> after(attempt, ThreadLocalRandom.current().nextDouble()))
        .attempts(budget);
  }
}
