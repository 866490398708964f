package dev.outbox4j.resilience4j;

import static org.assertj.core.api.Assertions.assertThat;

import dev.outbox4j.RetryPolicy;
import io.github.resilience4j.core.IntervalFunction;
import io.github.resilience4j.retry.RetryConfig;
import java.io.FileNotFoundException;
import java.io.IOException;
import java.time.Duration;
import org.junit.jupiter.api.Test;

class Resilience4jRetryTest {
  private static final Duration NOW = Duration.ZERO;

  @Test
  void takesOverAttemptsDelaysAndExceptionRules() {
    RetryPolicy policy =
        Resilience4jRetry.policy(
            RetryConfig.custom()
                .maxAttempts(4)
                .intervalFunction(IntervalFunction.ofExponentialBackoff(200, 2))
                .retryExceptions(IOException.class)
                .ignoreExceptions(FileNotFoundException.class)
                .build());

    assertThat(policy.maxAttempts()).isEqualTo(4);
    assertThat(policy.delayAfter(1, null)).isEqualTo(Duration.ofMillis(200));
    assertThat(policy.delayAfter(3, null)).isEqualTo(Duration.ofMillis(800));
    assertThat(policy.givesUp(1, NOW, new IOException())).isFalse();
    assertThat(policy.givesUp(1, NOW, new FileNotFoundException())).isTrue();
    assertThat(policy.givesUp(1, NOW, new IllegalStateException())).isTrue();
    assertThat(policy.givesUp(4, NOW, new IOException())).isTrue();
  }

  @Test
  void takesOverAnIntervalThatLooksAtTheException() {
    RetryPolicy policy =
        Resilience4jRetry.policy(
            RetryConfig.custom()
                .intervalBiFunction(
                    (attempt, result) ->
                        result.getLeft() instanceof IOException ? 5L : 1000L * attempt)
                .build());

    assertThat(policy.delayAfter(2, new IOException())).isEqualTo(Duration.ofMillis(5));
    assertThat(policy.delayAfter(2, new IllegalStateException())).isEqualTo(Duration.ofSeconds(2));
    assertThat(policy.delayAfter(2, null)).isEqualTo(Duration.ofSeconds(2));
  }
}
