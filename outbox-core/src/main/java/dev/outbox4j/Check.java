package dev.outbox4j;

import java.time.Duration;

/** Refuses values out of range where they are set. */
final class Check {
  private Check() {}

  static int range(String what, int value, int min, int max) {
    if (value < min || value > max) {
      throw new IllegalArgumentException(
          what + " is " + value + "; it must be " + min + " to " + max);
    }
    return value;
  }

  static Duration range(String what, Duration value, Duration min, Duration max) {
    if (value.compareTo(min) < 0 || value.compareTo(max) > 0) {
      throw new IllegalArgumentException(
          what + " is " + value + "; it must be " + min + " to " + max);
    }
    return value;
  }
}
