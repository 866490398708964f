package dev.outbox4j.resilience4j;

import dev.outbox4j.RateLimit;
import io.github.resilience4j.ratelimiter.RateLimiter;
import java.time.Duration;
import java.util.Objects;

/** Rate limits by a resilience4j limiter. */
public final class Resilience4jRateLimit {
  private static final Duration SHORTEST = Duration.ofMillis(1);
  private static final Duration LONGEST = Duration.ofMillis(100);

  /** A subscriber asks so often within a period, so that it is late by a small part of it. */
  private static final int LOOKS_PER_PERIOD = 10;

  private Resilience4jRateLimit() {}

  /**
   * Returns a limit by the permissions of a limiter: each message takes one when it is claimed. The
   * limiter is of this process, and so is the rate. It is never waited for; its timeout is not
   * used, but as the longest time for which permissions may be taken in advance where others take
   * from the same limiter meanwhile.
   *
   * @param limiter the limiter; it may be shared, and changed while subscribers run
   * @return the limit
   */
  public static RateLimit of(RateLimiter limiter) {
    return new Limited(Objects.requireNonNull(limiter, "limiter"));
  }

  private record Limited(RateLimiter limiter) implements RateLimit {
    @Override
    public int available() {
      return limiter.getMetrics().getAvailablePermissions();
    }

    @Override
    public void take(int messages) {
      limiter.reservePermission(messages);
    }

    @Override
    public Duration untilNext() {
      Duration look =
          limiter.getRateLimiterConfig().getLimitRefreshPeriod().dividedBy(LOOKS_PER_PERIOD);
      if (look.compareTo(SHORTEST) < 0) {
        return SHORTEST;
      }
      return look.compareTo(LONGEST) > 0 ? LONGEST : look;
    }

    @Override
    public String toString() {
      return "limiter " + limiter.getName();
    }
  }
}
