package dev.outbox4j;

import java.time.Duration;
import java.util.Objects;

/**
 * For how long a second message of the same dedup key is not published. Both times count from when
 * the message that has the key was published, by the server's clock. Immutable.
 *
 * @param inFlight while that message is in the outbox: until it is acked or dead-lettered
 * @param completed once it is no longer there
 */
public record DedupWindow(Duration inFlight, Duration completed) {
  private static final Duration LONGEST = Duration.ofDays(36_500);

  /**
   * Checks the times.
   *
   * @throws IllegalArgumentException if one is negative or longer than 36,500 days, or both are
   *     zero
   */
  public DedupWindow {
    requireTime("inFlight", inFlight);
    requireTime("completed", completed);
    if (inFlight.isZero() && completed.isZero()) {
      throw new IllegalArgumentException(
          "the dedup window is zero; give it a time, or publish without dedupKey(...)");
    }
  }

  /**
   * Returns a window that is the same whatever has become of the first message.
   *
   * @param time more than zero, at most 36,500 days
   * @return the window
   * @throws IllegalArgumentException if the time is out of range
   */
  public static DedupWindow of(Duration time) {
    return new DedupWindow(time, time);
  }

  /**
   * Returns a window that lasts as long as the first message is in the outbox, and no longer than a
   * time: once it is done, or dead, the key is free.
   *
   * @param time more than zero, at most 36,500 days
   * @return the window
   * @throws IllegalArgumentException if the time is out of range
   */
  public static DedupWindow whileInFlight(Duration time) {
    return new DedupWindow(time, Duration.ZERO);
  }

  private static void requireTime(String what, Duration time) {
    Objects.requireNonNull(time, what);
    if (time.isNegative() || time.compareTo(LONGEST) > 0) {
      throw new IllegalArgumentException(
          what + " is " + time + "; it must be zero to " + LONGEST.toDays() + " days");
    }
  }
}
