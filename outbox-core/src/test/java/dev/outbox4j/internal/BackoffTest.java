package dev.outbox4j.internal;

import static org.assertj.core.api.Assertions.assertThat;

import java.time.Duration;
import org.junit.jupiter.api.Test;

class BackoffTest {
  private final Backoff backoff = new Backoff();

  @Test
  void doublesFromATenthOfASecondToOneSecondAndBeginsAnewAfterASuccess() {
    for (int outage = 0; outage < 50; outage++) {
      for (long expected : new long[] {100, 200, 400, 800}) {
        assertThat(next()).isBetween(expected * 7 / 10 - 1, Math.min(1_000, expected * 13 / 10));
      }
      for (int i = 0; i < 30; i++) {
        assertThat(next()).isBetween(700L, 1_000L);
      }
      backoff.reset();
    }
  }

  private long next() {
    return Duration.ofNanos(backoff.nextNanos()).toMillis();
  }
}
