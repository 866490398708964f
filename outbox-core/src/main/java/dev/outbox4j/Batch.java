package dev.outbox4j;

import java.time.Duration;

/**
 * How many messages a {@link BatchHandler} takes at once, and for how long it waits for more.
 * Immutable.
 *
 * @param most how many at most, 2 to 10,000
 * @param linger how long a worker waits for further messages once it has one; zero to 1 minute.
 *     Messages that are there already are taken at once
 */
public record Batch(int most, Duration linger) {
  private static final Duration LONGEST_LINGER = Duration.ofMinutes(1);

  /** Checks the components. */
  public Batch {
    Check.range("most", most, 2, 10_000);
    Check.range("linger", linger, Duration.ZERO, LONGEST_LINGER);
  }

  /**
   * Returns a batch of what is there.
   *
   * @param most how many messages at most, 2 to 10,000
   * @return the batch; it does not wait for more
   * @throws IllegalArgumentException if the number is out of range
   */
  public static Batch of(int most) {
    return new Batch(most, Duration.ZERO);
  }

  /**
   * Returns the same with a time to wait for more.
   *
   * @param linger zero to 1 minute; keep it short beside the lease, as those that are there wait,
   *     too
   * @return the batch
   * @throws IllegalArgumentException if it is out of range
   */
  public Batch linger(Duration linger) {
    return new Batch(most, linger);
  }
}
