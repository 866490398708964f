package dev.outbox4j;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.ThreadLocalRandom;
import java.util.function.Predicate;
import org.jspecify.annotations.Nullable;

/**
 * When a failed message comes again, and when it is given up. Immutable and thread-safe: each
 * method returns a changed copy. The wait is a row in the database, counted by the server's clock,
 * not a sleeping thread.
 */
public final class RetryPolicy {
  /** The longest delay between two attempts that any policy gives: 365 days. */
  public static final Duration MAX_DELAY = Duration.ofDays(365);

  private static final int DEFAULT_ATTEMPTS = 10;

  private final RetryDelay delay;
  private final Duration max;
  private final double jitter;
  private final int attempts;
  private final @Nullable Duration maxTotalTime;
  private final List<Predicate<Throwable>> permanent;

  private RetryPolicy(
      RetryDelay delay,
      Duration max,
      double jitter,
      int attempts,
      @Nullable Duration maxTotalTime,
      List<Predicate<Throwable>> permanent) {
    this.delay = delay;
    this.max = max;
    this.jitter = jitter;
    this.attempts = attempts;
    this.maxTotalTime = maxTotalTime;
    this.permanent = List.copyOf(permanent);
  }

  /** {@return the default: exponential from 1 s, doubling up to 300 s, 10 attempts, jitter 0.2} */
  public static RetryPolicy standard() {
    return exponential(Duration.ofSeconds(1)).max(Duration.ofSeconds(300)).jitter(0.2);
  }

  /**
   * Returns a policy whose delay doubles from attempt to attempt; 10 attempts.
   *
   * @param initial the delay after the first failure; 1 ms to 365 days
   * @return the policy
   */
  public static RetryPolicy exponential(Duration initial) {
    return exponential(initial, 2.0);
  }

  /**
   * Returns a policy whose delay grows by a factor from attempt to attempt; 10 attempts.
   *
   * @param initial the delay after the first failure; 1 ms to 365 days
   * @param multiplier the factor; 1 or more
   * @return the policy
   */
  public static RetryPolicy exponential(Duration initial, double multiplier) {
    long first = positive("initial", initial);
    if (!(multiplier >= 1.0) || Double.isInfinite(multiplier)) {
      throw new IllegalArgumentException("multiplier is " + multiplier + "; it must be 1 or more");
    }
    return custom((attempt, failure) -> millis(first * Math.pow(multiplier, attempt - 1.0)));
  }

  /**
   * Returns a policy whose delay grows by a step from attempt to attempt; 10 attempts.
   *
   * @param initial the delay after the first failure; 1 ms to 365 days
   * @param step what each further failure adds; zero to 365 days
   * @return the policy
   */
  public static RetryPolicy linear(Duration initial, Duration step) {
    long first = positive("initial", initial);
    double more = Check.range("step", step, Duration.ZERO, MAX_DELAY).toMillis();
    return custom((attempt, failure) -> millis(first + more * (attempt - 1.0)));
  }

  /**
   * Returns a policy of equal delays; 10 attempts.
   *
   * @param delay between two attempts; 1 ms to 365 days
   * @return the policy
   */
  public static RetryPolicy constant(Duration delay) {
    positive("delay", delay);
    return custom((attempt, failure) -> delay);
  }

  /** {@return the policy that gives up at the first failure} */
  public static RetryPolicy none() {
    return custom((attempt, failure) -> Duration.ZERO).attempts(1);
  }

  /**
   * Returns a policy whose delays a function gives; 10 attempts. Jitter and the longest delay apply
   * to what it gives.
   *
   * @param delay called once per failure that is not the last
   * @return the policy
   */
  public static RetryPolicy custom(RetryDelay delay) {
    return new RetryPolicy(
        Objects.requireNonNull(delay, "delay"), MAX_DELAY, 0, DEFAULT_ATTEMPTS, null, List.of());
  }

  private static Duration millis(double millis) {
    return Duration.ofMillis((long) Math.min(millis, (double) MAX_DELAY.toMillis()));
  }

  private static long positive(String what, Duration value) {
    return Check.range(what, value, Duration.ofMillis(1), MAX_DELAY).toMillis();
  }

  /**
   * Bounds the delay, jitter included.
   *
   * @param max the longest delay; 1 ms to 365 days; default 365 days
   * @return the changed policy
   */
  public RetryPolicy max(Duration max) {
    positive("max", max);
    return new RetryPolicy(delay, max, jitter, attempts, maxTotalTime, permanent);
  }

  /**
   * Sets how many handler runs may fail before the message is given up, the first included.
   *
   * @param attempts 1 or more; default 10
   * @return the changed policy
   */
  public RetryPolicy attempts(int attempts) {
    if (attempts < 1) {
      throw new IllegalArgumentException("attempts is " + attempts + "; it must be 1 or more");
    }
    return new RetryPolicy(delay, max, jitter, attempts, maxTotalTime, permanent);
  }

  /**
   * Spreads each delay at random, so that messages that failed together do not come again together.
   *
   * @param jitter the greatest share of the delay added or taken, 0 to 1; default 0
   * @return the changed policy
   */
  public RetryPolicy jitter(double jitter) {
    if (!(jitter >= 0 && jitter <= 1)) {
      throw new IllegalArgumentException("jitter is " + jitter + "; it must be 0 to 1");
    }
    return new RetryPolicy(delay, max, jitter, attempts, maxTotalTime, permanent);
  }

  /**
   * Gives a message up at a failure that comes this long after its first failure was recorded, by
   * the server's clock. For the first failure itself, the time of its run counts.
   *
   * @param maxTotalTime more than zero; unbounded by default
   * @return the changed policy
   */
  public RetryPolicy maxTotalTime(Duration maxTotalTime) {
    Objects.requireNonNull(maxTotalTime, "maxTotalTime");
    if (maxTotalTime.isNegative() || maxTotalTime.isZero()) {
      throw new IllegalArgumentException(
          "maxTotalTime is " + maxTotalTime + "; it must be more than zero");
    }
    return new RetryPolicy(delay, max, jitter, attempts, maxTotalTime, permanent);
  }

  /**
   * Gives up at once on exceptions of these classes; adds to what was said before. Causes are not
   * looked at.
   *
   * @param classes exception classes, subclasses included
   * @return the changed policy
   */
  @SafeVarargs
  @SuppressWarnings("varargs") // the array is copied and never written to
  public final RetryPolicy giveUpOn(Class<? extends Throwable>... classes) {
    List<Class<? extends Throwable>> listed = List.of(classes);
    return giveUpIf(failure -> listed.stream().anyMatch(type -> type.isInstance(failure)));
  }

  /**
   * Gives up at once on exceptions that the predicate accepts; adds to what was said before.
   *
   * @param permanent tells whether a further attempt is pointless; must be thread-safe
   * @return the changed policy
   */
  public RetryPolicy giveUpIf(Predicate<Throwable> permanent) {
    List<Predicate<Throwable>> all = new ArrayList<>(this.permanent);
    all.add(Objects.requireNonNull(permanent, "permanent"));
    return new RetryPolicy(delay, max, jitter, attempts, maxTotalTime, all);
  }

  /**
   * Retries only exceptions of these classes and gives up at once on all others.
   *
   * @param classes exception classes, subclasses included
   * @return the changed policy
   */
  @SafeVarargs
  @SuppressWarnings("varargs") // the array is copied and never written to
  public final RetryPolicy retryOnlyOn(Class<? extends Throwable>... classes) {
    List<Class<? extends Throwable>> listed = List.of(classes);
    return giveUpIf(failure -> listed.stream().noneMatch(type -> type.isInstance(failure)));
  }

  /** {@return how many handler runs may fail before the message is given up} */
  public int maxAttempts() {
    return attempts;
  }

  /** Tells whether attempts may end before their number is reached. */
  boolean isBoundedByTime() {
    return maxTotalTime != null;
  }

  /**
   * Tells whether a failure is the last one.
   *
   * @param attempt which handler run failed, counted from 1
   * @param sinceFirstAttempt how long ago the first attempt began, by the server's clock
   * @param failure what the handler threw, or null if it asked for a retry
   * @return true if the message is to be given up
   */
  public boolean givesUp(int attempt, Duration sinceFirstAttempt, @Nullable Throwable failure) {
    if (attempt >= attempts
        || (maxTotalTime != null && sinceFirstAttempt.compareTo(maxTotalTime) >= 0)) {
      return true;
    }
    return failure != null && permanent.stream().anyMatch(rule -> rule.test(failure));
  }

  /**
   * Returns how long to wait after a failure.
   *
   * @param attempt which handler run failed, counted from 1
   * @param failure what the handler threw, or null if it asked for a retry
   * @return zero or more
   */
  public Duration delayAfter(int attempt, @Nullable Throwable failure) {
    Duration wait = delay.after(attempt, failure);
    if (wait.isNegative() || wait.isZero()) {
      return Duration.ZERO;
    }
    double millis = wait.compareTo(MAX_DELAY) > 0 ? MAX_DELAY.toMillis() : wait.toMillis();
    if (jitter > 0) {
      millis *= 1 + jitter * ThreadLocalRandom.current().nextDouble(-1, 1);
    }
    return millis(Math.min(millis, (double) max.toMillis()));
  }
}
