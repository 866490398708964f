package dev.outbox4j.benchmarks.spi;

import java.time.Duration;
import java.time.Instant;

/**
 * Timers of one interval each, whose instants are whole milliseconds: what every contestant can
 * have. Immutable.
 *
 * @param timers how many
 * @param interval between two instants of a timer, in whole milliseconds
 * @param spread whether the timers' instants are spread evenly over the interval, or all the same
 */
public record Beats(int timers, Duration interval, boolean spread) {

  /**
   * Returns how long after the multiples of the interval a timer's instants are.
   *
   * @param timer its number, from 0
   * @return less than the interval, in whole milliseconds
   */
  public Duration offset(int timer) {
    return Duration.ofMillis(spread ? interval.toMillis() * timer / timers : 0);
  }

  /**
   * Returns the first instant of a timer after another instant.
   *
   * @param timer its number, from 0
   * @param after an instant, which is not returned itself
   * @return an instant that is later
   */
  public Instant next(int timer, Instant after) {
    long every = interval.toMillis();
    long offset = offset(timer).toMillis();
    long passed = Math.floorDiv(after.toEpochMilli() - offset, every);
    return Instant.ofEpochMilli((passed + 1) * every + offset);
  }
}
