package dev.outbox4j.resilience4j;

import static org.assertj.core.api.Assertions.assertThat;

import dev.outbox4j.RateLimit;
import io.github.resilience4j.ratelimiter.RateLimiter;
import io.github.resilience4j.ratelimiter.RateLimiterConfig;
import java.time.Duration;
import org.junit.jupiter.api.Test;

class Resilience4jRateLimitTest {
  private static RateLimiter limiter(Duration period, int permissions) {
    return RateLimiter.of(
        "labels",
        RateLimiterConfig.custom()
            .limitRefreshPeriod(period)
            .limitForPeriod(permissions)
            .timeoutDuration(Duration.ZERO)
            .build());
  }

  @Test
  void messagesTakePermissionsAndWhatOthersTakeIsMissing() {
    RateLimiter limiter = limiter(Duration.ofHours(1), 5);
    RateLimit limit = Resilience4jRateLimit.of(limiter);
    assertThat(limit.available()).isEqualTo(5);
    limit.take(2);
    assertThat(limit.available()).isEqualTo(3);
    assertThat(limiter.acquirePermission(3)).isTrue();
    assertThat(limit.available()).isZero();
    assertThat(limit).hasToString("limiter labels");
  }

  @Test
  void aLimiterIsAskedTenTimesAPeriodWithinBounds() {
    assertThat(Resilience4jRateLimit.of(limiter(Duration.ofMillis(500), 5)).untilNext())
        .isEqualTo(Duration.ofMillis(50));
    assertThat(Resilience4jRateLimit.of(limiter(Duration.ofHours(1), 5)).untilNext())
        .isEqualTo(Duration.ofMillis(100));
    assertThat(Resilience4jRateLimit.of(limiter(Duration.ofNanos(500), 5)).untilNext())
        .isEqualTo(Duration.ofMillis(1));
  }
}
