package dev.outbox4j.monitor;

import dev.outbox4j.RetryPolicy;
import dev.outbox4j.TypeRef;
import java.lang.reflect.Type;
import java.time.Duration;
import java.util.Objects;
import java.util.Optional;
import java.util.OptionalLong;
import org.jspecify.annotations.Nullable;

/**
 * What instances of a monitor have in common: a name, the type of their input, when they expire and
 * how long they wait. Immutable; each setting returns a new definition.
 *
 * @param <I> the input of an instance
 */
public final class MonitorType<I> {
  /** The bytes that a name may have in UTF-8: {@value}. */
  public static final int MAX_NAME_BYTES = MonitorNames.MAX_NAME_BYTES;

  private static final Duration SHORTEST = Duration.ofMillis(1);
  private static final Duration LONGEST = MonitorResult.MAX_DELAY;
  private static final Duration DEFAULT_WAIT = Duration.ofMinutes(1);
  private static final int DEFAULT_HISTORY = 100;
  private static final int MAX_HISTORY = 10_000;

  private final String name;
  private final Type input;
  private final Duration wait;
  private final @Nullable Duration lifetime;
  private final long maxIterations;
  private final RetryPolicy retry;
  private final int history;

  private MonitorType(
      String name,
      Type input,
      Duration wait,
      @Nullable Duration lifetime,
      long maxIterations,
      RetryPolicy retry,
      int history) {
    this.name = name;
    this.input = input;
    this.wait = wait;
    this.lifetime = lifetime;
    this.maxIterations = maxIterations;
    this.retry = retry;
    this.history = history;
  }

  private static <I> MonitorType<I> named(String name, Type input) {
    return new MonitorType<>(
        MonitorNames.requireType(name),
        input,
        DEFAULT_WAIT,
        null,
        0,
        RetryPolicy.standard(),
        DEFAULT_HISTORY);
  }

  /**
   * Defines a type whose input is read as JSON is given, and may be left out.
   *
   * @param name unique in its application; not blank, without control characters, at most {@value
   *     #MAX_NAME_BYTES} bytes in UTF-8. It is on record with each instance
   * @return the definition
   * @throws IllegalArgumentException if the name is not allowed
   */
  public static MonitorType<Json> of(String name) {
    return named(name, Json.class);
  }

  /**
   * Defines a type.
   *
   * @param name unique in its application; not blank, without control characters, at most {@value
   *     #MAX_NAME_BYTES} bytes in UTF-8. It is on record with each instance
   * @param input what the codec makes of an instance's input
   * @param <I> the same
   * @return the definition
   * @throws IllegalArgumentException if the name is not allowed
   */
  public static <I> MonitorType<I> of(String name, Class<I> input) {
    return named(name, Objects.requireNonNull(input, "input"));
  }

  /**
   * Defines a type whose input has type arguments.
   *
   * @param name unique in its application; not blank, without control characters, at most {@value
   *     #MAX_NAME_BYTES} bytes in UTF-8. It is on record with each instance
   * @param input what the codec makes of an instance's input
   * @param <I> the same
   * @return the definition
   * @throws IllegalArgumentException if the name is not allowed
   */
  public static <I> MonitorType<I> of(String name, TypeRef<I> input) {
    return named(name, input.type());
  }

  /**
   * Sets how long an instance waits after a check that says {@link MonitorResult#again()}.
   *
   * @param wait 1 ms to 36,500 days; default one minute
   * @return the definition
   * @throws IllegalArgumentException if it is out of range
   */
  public MonitorType<I> every(Duration wait) {
    requireWithin("wait", wait);
    return new MonitorType<>(name, input, wait, lifetime, maxIterations, retry, history);
  }

  /**
   * Sets how long after its start an instance expires. No check begins from then on, and the
   * instance is completed as {@link MonitorOutcome#EXPIRED}. It is on record with each instance, so
   * another time is for those that are started from now on.
   *
   * @param lifetime 1 ms to 36,500 days; by default instances do not expire
   * @return the definition
   * @throws IllegalArgumentException if it is out of range
   */
  public MonitorType<I> expiresAfter(Duration lifetime) {
    requireWithin("lifetime", lifetime);
    return new MonitorType<>(name, input, wait, lifetime, maxIterations, retry, history);
  }

  /**
   * Sets after how many checks that say {@link MonitorResult#again} an instance is completed as
   * {@link MonitorOutcome#MAX_ITERATIONS}. It ends with the last one and does not wait once more.
   *
   * @param most at least 1; by default there is no limit
   * @return the definition
   * @throws IllegalArgumentException if it is below 1
   */
  public MonitorType<I> maxIterations(long most) {
    if (most < 1) {
      throw new IllegalArgumentException("maxIterations is " + most + "; it must be 1 or more");
    }
    return new MonitorType<>(name, input, wait, lifetime, most, retry, history);
  }

  /**
   * Sets when a check that failed is tried again, within its iteration. No attempt begins at or
   * after the expiry.
   *
   * @param retry first wait, factor, attempts, longest wait, total time, and what is given up at
   *     once; default {@link RetryPolicy#standard()}
   * @return the definition
   */
  public MonitorType<I> retry(RetryPolicy retry) {
    return new MonitorType<>(
        name,
        input,
        wait,
        lifetime,
        maxIterations,
        Objects.requireNonNull(retry, "retry"),
        history);
  }

  /**
   * Sets how many entries of an instance's history are kept, the latest ones. With 0 nothing is
   * written, which makes a check cheaper.
   *
   * @param entries 0 to 10,000; default 100
   * @return the definition
   * @throws IllegalArgumentException if it is out of range
   */
  public MonitorType<I> history(int entries) {
    if (entries < 0 || entries > MAX_HISTORY) {
      throw new IllegalArgumentException("history is " + entries + "; it must be 0 to 10,000");
    }
    return new MonitorType<>(name, input, wait, lifetime, maxIterations, retry, entries);
  }

  private static void requireWithin(String what, Duration value) {
    if (value.compareTo(SHORTEST) < 0 || value.compareTo(LONGEST) > 0) {
      throw new IllegalArgumentException(
          what + " is " + value + "; it must be 1 ms to 36,500 days");
    }
  }

  /** {@return its name} */
  public String name() {
    return name;
  }

  /** {@return what the codec makes of an instance's input} */
  public Type input() {
    return input;
  }

  /** {@return how long an instance waits if its check does not say} */
  public Duration every() {
    return wait;
  }

  /** {@return how long after its start an instance expires, if it does} */
  public Optional<Duration> expiresAfter() {
    return Optional.ofNullable(lifetime);
  }

  /** {@return after how many checks an instance is completed; empty if there is no limit} */
  public OptionalLong maxIterations() {
    return maxIterations == 0 ? OptionalLong.empty() : OptionalLong.of(maxIterations);
  }

  /** {@return when a check that failed is tried again} */
  public RetryPolicy retry() {
    return retry;
  }

  /** {@return how many entries of an instance's history are kept} */
  public int history() {
    return history;
  }

  @Override
  public String toString() {
    return "MonitorType[" + name + ", " + input.getTypeName() + "]";
  }
}
