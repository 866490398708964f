package dev.outbox4j.timer.internal;

import dev.outbox4j.timer.Timer;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;

/** The instants of a timer, from its start to its end. */
public final class Instants {
  private static final long MIX = 0x9E3779B97F4A7C15L;

  private Instants() {}

  /**
   * Returns the first instant after another.
   *
   * @param timer the timer
   * @param after the instant before
   * @return the instant; empty if there is none any more
   */
  public static Optional<Instant> next(Timer timer, Instant after) {
    Instant from = timer.start().map(start -> start.minusNanos(1)).orElse(after);
    return timer
        .schedule()
        .next(from.isAfter(after) ? from : after)
        .filter(instant -> timer.end().map(end -> !instant.isAfter(end)).orElse(true));
  }

  /**
   * Returns the next instants after another.
   *
   * @param timer the timer
   * @param after the instant before
   * @param most how many at most
   * @return the instants, in their order
   */
  public static List<Instant> next(Timer timer, Instant after, int most) {
    List<Instant> found = new ArrayList<>();
    Optional<Instant> next = next(timer, after);
    while (next.isPresent() && found.size() < most) {
      found.add(next.get());
      next = next(timer, next.get());
    }
    return found;
  }

  /**
   * Returns how long after its instant a run is to begin: the same on every node.
   *
   * @param timer the timer
   * @param instant the instant
   * @return from zero to below the timer's jitter
   */
  public static Duration jitter(Timer timer, Instant instant) {
    long most = timer.jitter().toMillis();
    if (most == 0) {
      return Duration.ZERO;
    }
    long hash = timer.name().hashCode();
    hash = (hash * 31 + instant.getEpochSecond()) * 31 + instant.getNano();
    hash = (hash ^ (hash >>> 32)) * MIX;
    return Duration.ofMillis(Long.remainderUnsigned(hash ^ (hash >>> 32), most));
  }
}
