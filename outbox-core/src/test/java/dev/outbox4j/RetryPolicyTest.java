package dev.outbox4j;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;

import java.io.FileNotFoundException;
import java.io.IOException;
import java.time.Duration;
import java.util.List;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;

class RetryPolicyTest {
  private static final Duration NOW = Duration.ZERO;

  @Test
  void doublesFromAttemptToAttempt() {
    assertThat(delays(RetryPolicy.exponential(Duration.ofSeconds(1)), 5))
        .containsExactly(1000L, 2000L, 4000L, 8000L, 16000L);
    assertThat(delays(RetryPolicy.exponential(Duration.ofMillis(100), 3), 3))
        .containsExactly(100L, 300L, 900L);
  }

  @Test
  void growsByAStep() {
    assertThat(delays(RetryPolicy.linear(Duration.ofSeconds(1), Duration.ofMillis(500)), 3))
        .containsExactly(1000L, 1500L, 2000L);
    assertThat(delays(RetryPolicy.linear(Duration.ofSeconds(1), Duration.ZERO), 2))
        .containsExactly(1000L, 1000L);
  }

  @Test
  void staysConstant() {
    assertThat(delays(RetryPolicy.constant(Duration.ofSeconds(7)), 3))
        .containsExactly(7000L, 7000L, 7000L);
  }

  @Test
  void givesUpAtTheFirstFailureWhenThereIsNoPolicy() {
    assertThat(RetryPolicy.none().givesUp(1, NOW, null)).isTrue();
    assertThat(RetryPolicy.none().maxAttempts()).isEqualTo(1);
  }

  @Test
  void standsAtTenAttemptsUpToFiveMinutesByDefault() {
    RetryPolicy policy = RetryPolicy.standard();

    assertThat(policy.givesUp(9, Duration.ofDays(100), null)).isFalse();
    assertThat(policy.givesUp(10, NOW, null)).isTrue();
    for (int i = 0; i < 1000; i++) {
      assertThat(policy.delayAfter(1, null))
          .isBetween(Duration.ofMillis(800), Duration.ofMillis(1200));
      assertThat(policy.delayAfter(10, null))
          .isBetween(Duration.ofMinutes(4), Duration.ofMinutes(5));
    }
  }

  @Test
  void neverExceedsItsMaximumNorTheLongestDelay() {
    RetryPolicy bounded =
        RetryPolicy.exponential(Duration.ofSeconds(1)).max(Duration.ofSeconds(5)).jitter(1);
    for (int attempt = 1; attempt < 200; attempt++) {
      assertThat(bounded.delayAfter(attempt, null)).isBetween(Duration.ZERO, Duration.ofSeconds(5));
    }
    for (int attempt : new int[] {64, 1000, Integer.MAX_VALUE}) {
      assertThat(RetryPolicy.exponential(Duration.ofDays(1)).delayAfter(attempt, null))
          .isEqualTo(RetryPolicy.MAX_DELAY);
      assertThat(
              RetryPolicy.linear(Duration.ofDays(1), RetryPolicy.MAX_DELAY)
                  .delayAfter(attempt, null))
          .isEqualTo(RetryPolicy.MAX_DELAY);
    }
  }

  @Test
  void spreadsDelaysBothWaysWithinTheJitter() {
    RetryPolicy policy = RetryPolicy.constant(Duration.ofSeconds(10)).jitter(0.3);
    List<Long> delays = delays(policy, 1000);

    assertThat(delays).allSatisfy(delay -> assertThat(delay).isBetween(7000L, 13000L));
    assertThat(delays).anyMatch(delay -> delay < 9000).anyMatch(delay -> delay > 11000);
  }

  @Test
  void givesUpOnceTheTotalTimeHasPassed() {
    RetryPolicy policy =
        RetryPolicy.constant(Duration.ofSeconds(1)).maxTotalTime(Duration.ofMinutes(1));

    assertThat(policy.givesUp(1, Duration.ofSeconds(59), null)).isFalse();
    assertThat(policy.givesUp(1, Duration.ofMinutes(1), null)).isTrue();
  }

  @Test
  void givesUpOnListedExceptionsAndTheirSubclassesButNotOnCauses() {
    RetryPolicy policy =
        RetryPolicy.standard()
            .giveUpOn(IOException.class)
            .giveUpIf(failure -> "fatal".equals(failure.getMessage()));

    assertThat(policy.givesUp(1, NOW, new FileNotFoundException())).isTrue();
    assertThat(policy.givesUp(1, NOW, new IllegalStateException("fatal"))).isTrue();
    assertThat(policy.givesUp(1, NOW, new IllegalStateException(new IOException()))).isFalse();
    assertThat(policy.givesUp(1, NOW, null)).isFalse();
  }

  @Test
  void retriesListedExceptionsOnly() {
    RetryPolicy policy = RetryPolicy.standard().retryOnlyOn(IOException.class);

    assertThat(policy.givesUp(1, NOW, new FileNotFoundException())).isFalse();
    assertThat(policy.givesUp(1, NOW, new IllegalStateException())).isTrue();
    assertThat(policy.givesUp(1, NOW, null)).as("a retry asked for").isFalse();
  }

  @Test
  void isImmutable() {
    RetryPolicy original = RetryPolicy.constant(Duration.ofSeconds(1));
    RetryPolicy changed =
        original.attempts(2).max(Duration.ofMillis(1)).giveUpOn(IllegalStateException.class);

    assertThat(original.maxAttempts()).isEqualTo(10);
    assertThat(original.delayAfter(1, null)).isEqualTo(Duration.ofSeconds(1));
    assertThat(original.givesUp(1, NOW, new IllegalStateException())).isFalse();
    assertThat(changed.delayAfter(1, null)).isEqualTo(Duration.ofMillis(1));
  }

  @Test
  void takesDelaysFromAFunctionWithinTheSameBounds() {
    RetryPolicy policy =
        RetryPolicy.custom(
            (attempt, failure) ->
                failure instanceof IOException
                    ? Duration.ofSeconds(attempt)
                    : Duration.ofDays(1000).multipliedBy(attempt == 1 ? 1 : -1));

    assertThat(policy.delayAfter(3, new IOException())).isEqualTo(Duration.ofSeconds(3));
    assertThat(policy.delayAfter(1, null)).isEqualTo(RetryPolicy.MAX_DELAY);
    assertThat(policy.delayAfter(2, null)).isEqualTo(Duration.ZERO);
    assertThat(policy.max(Duration.ofSeconds(2)).delayAfter(3, new IOException()))
        .isEqualTo(Duration.ofSeconds(2));
    assertThat(
            RetryPolicy.custom((attempt, failure) -> Duration.ofSeconds(Long.MAX_VALUE))
                .delayAfter(1, null))
        .isEqualTo(RetryPolicy.MAX_DELAY);
  }

  @Test
  void refusesValuesOutOfRange() {
    RetryPolicy policy = RetryPolicy.standard();
    for (Duration bad :
        List.of(Duration.ZERO, Duration.ofNanos(1), Duration.ofSeconds(-1), Duration.ofDays(366))) {
      assertThatIllegalArgumentException().isThrownBy(() -> RetryPolicy.exponential(bad));
      assertThatIllegalArgumentException().isThrownBy(() -> RetryPolicy.linear(bad, Duration.ZERO));
      assertThatIllegalArgumentException().isThrownBy(() -> RetryPolicy.constant(bad));
      assertThatIllegalArgumentException().isThrownBy(() -> policy.max(bad));
    }
    for (double bad : new double[] {0.99, -1, Double.NaN, Double.POSITIVE_INFINITY}) {
      assertThatIllegalArgumentException()
          .isThrownBy(() -> RetryPolicy.exponential(Duration.ofSeconds(1), bad));
    }
    for (double bad : new double[] {-0.01, 1.01, Double.NaN}) {
      assertThatIllegalArgumentException().isThrownBy(() -> policy.jitter(bad));
    }
    assertThatIllegalArgumentException().isThrownBy(() -> policy.attempts(0));
    assertThatIllegalArgumentException().isThrownBy(() -> policy.maxTotalTime(Duration.ZERO));
    assertThatIllegalArgumentException()
        .isThrownBy(() -> RetryPolicy.linear(Duration.ofSeconds(1), Duration.ofSeconds(-1)));
  }

  private static List<Long> delays(RetryPolicy policy, int attempts) {
    return IntStream.rangeClosed(1, attempts)
        .mapToObj(attempt -> policy.delayAfter(attempt, null).toMillis())
        .toList();
  }
}
