package dev.outbox4j.resilience4j;

import dev.outbox4j.OutboxException;
import dev.outbox4j.RetryPolicy;
import io.github.resilience4j.core.functions.Either;
import io.github.resilience4j.retry.RetryConfig;
import java.time.Duration;
import java.util.function.Predicate;

/** Retry policies by the rules of a resilience4j configuration. */
public final class Resilience4jRetry {
  private Resilience4jRetry() {}

  /**
   * Returns a policy with the attempts, delays and exception rules of a configuration. Its rules on
   * results are not used: a handler says so by its {@link dev.outbox4j.Outcome}.
   *
   * @param config the configuration; read once per failure, never changed
   * @return the policy
   */
  public static RetryPolicy policy(RetryConfig config) {
    Predicate<Throwable> retryable = config.getExceptionPredicate();
    var interval = config.<Object>getIntervalBiFunction();
    return RetryPolicy.custom(
            (attempt, failure) ->
                Duration.ofMillis(
                    interval.apply(
                        attempt,
                        Either.left(
                            failure == null ? new OutboxException("retry asked for") : failure))))
        .attempts(config.getMaxAttempts())
        .giveUpIf(failure -> !retryable.test(failure));
  }
}
