package dev.outbox4j;

import java.time.Duration;
import java.util.Objects;

/** Refuses values out of range where they are set. */
final class Check {
  private static final Duration MAX_DELAY = Duration.ofDays(36_500);

  private Check() {}

  static int range(String what, int value, int min, int max) {
    if (value < min || value > max) {
      throw new IllegalArgumentException(
          what + " is " + value + "; it must be " + min + " to " + max);
    }
    return value;
  }

  static Duration range(String what, Duration value, Duration min, Duration max) {
    Objects.requireNonNull(value, what);
    if (value.compareTo(min) < 0 || value.compareTo(max) > 0) {
      throw new IllegalArgumentException(
          what + " is " + value + "; it must be " + min + " to " + max);
    }
    return value;
  }

  /** A delay of one message: zero to 36,500 days, which every server's clock can add. */
  static Duration delay(String what, Duration value) {
    return range(what, value, Duration.ZERO, MAX_DELAY);
  }
}
