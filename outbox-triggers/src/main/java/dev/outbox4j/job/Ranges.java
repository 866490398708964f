package dev.outbox4j.job;

import java.time.Duration;
import java.util.Objects;

/** Refuses values out of range where they are set. */
final class Ranges {
  private Ranges() {}

  static Duration require(String what, Duration value, Duration min, Duration max) {
    Objects.requireNonNull(value, what);
    if (value.compareTo(min) < 0 || value.compareTo(max) > 0) {
      throw new IllegalArgumentException(
          what + " is " + value + "; it must be " + min + " to " + max);
    }
    return value;
  }

  static int require(String what, int value, int min, int max) {
    if (value < min || value > max) {
      throw new IllegalArgumentException(
          what + " is " + value + "; it must be " + min + " to " + max);
    }
    return value;
  }
}
