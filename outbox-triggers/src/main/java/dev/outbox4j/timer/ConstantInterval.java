package dev.outbox4j.timer;

import java.math.BigInteger;
import java.time.DateTimeException;
import java.time.Duration;
import java.time.Instant;
import java.time.temporal.ChronoUnit;
import java.util.Optional;

/**
 * Instants at the same distance from one another, of elapsed time.
 *
 * @param interval the distance
 * @param anchor one of them
 */
record ConstantInterval(Duration interval, Instant anchor) implements Schedule {
  private static final Duration SHORTEST = Duration.ofMillis(1);
  private static final Duration LONGEST = Duration.ofDays(365_250);
  private static final Duration FARTHEST = Duration.ofDays(3_652_500);

  ConstantInterval {
    if (interval.compareTo(SHORTEST) < 0 || interval.compareTo(LONGEST) > 0) {
      throw new IllegalArgumentException(
          "interval is " + interval + "; it must be from 1 ms to 1,000 years");
    }
    if (Duration.between(Instant.EPOCH, anchor).abs().compareTo(FARTHEST) > 0) {
      throw new IllegalArgumentException(
          "anchor is " + anchor + "; it must be within 10,000 years of 1970");
    }
    boolean whole =
        interval.truncatedTo(ChronoUnit.MICROS).equals(interval)
            && anchor.truncatedTo(ChronoUnit.MICROS).equals(anchor);
    if (!whole) {
      throw new IllegalArgumentException(
          "interval is %s and anchor is %s; both must be in whole microseconds, so drop the rest"
              .formatted(interval, anchor));
    }
  }

  @Override
  public Optional<Instant> next(Instant after) {
    try {
      return Optional.of(anchor.plus(interval.multipliedBy(passed(after) + 1)));
    } catch (DateTimeException | ArithmeticException e) {
      return Optional.empty(); // beyond what an instant can be
    }
  }

  /** How many intervals lie between the anchor and an instant; below zero if it is earlier. */
  private long passed(Instant after) {
    BigInteger[] division =
        nanos(Duration.between(anchor, after)).divideAndRemainder(nanos(interval));
    long whole = division[0].longValueExact();
    return division[1].signum() < 0 ? whole - 1 : whole;
  }

  private static BigInteger nanos(Duration duration) {
    return BigInteger.valueOf(duration.getSeconds())
        .multiply(BigInteger.valueOf(1_000_000_000))
        .add(BigInteger.valueOf(duration.getNano()));
  }

  @Override
  public String description() {
    return "every " + interval + (anchor.equals(Instant.EPOCH) ? "" : " from " + anchor);
  }

  @Override
  public String toString() {
    return description();
  }
}
