package dev.outbox4j.internal;

import java.time.Duration;

/** Durations as nanoseconds. */
public final class Durations {
  private static final Duration LONGEST = Duration.ofDays(365);

  private Durations() {}

  /** Returns at most a year, which no wait outlasts. */
  public static long saturatedNanos(Duration duration) {
    return duration.compareTo(LONGEST) > 0 ? LONGEST.toNanos() : duration.toNanos();
  }
}
