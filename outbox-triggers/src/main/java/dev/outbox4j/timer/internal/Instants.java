package dev.outbox4j.timer.internal;

import dev.outbox4j.timer.Timer;
import java.time.Duration;
import java.time.Instant;
import java.time.temporal.ChronoUnit;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;

/** The instants of a timer, from its start to its end. */
public final class Instants {
  /** What is later has no common text form, and never comes. */
  private static final Instant LAST = Instant.parse("9999-12-31T00:00:00Z");

  private static final long MIX = 0x9E3779B97F4A7C15L;

  private Instants() {}

  /**
   * Returns the first instant after another.
   *
   * @param timer the timer
   * @param after the instant before
   * @return the instant; empty if there is none any more
   * @throws RuntimeException what the schedule threw, or an {@link IllegalStateException} with that
   *     as its cause; or that it returned one that is not later
   */
  public static Optional<Instant> next(Timer timer, Instant after) {
    Instant start = timer.start().map(first -> first.minusNanos(1)).orElse(after);
    Instant from = start.isAfter(after) ? start : after;
    Optional<Instant> next = ofSchedule(timer, from);
    if (next.isEmpty() || next.get().isAfter(LAST)) {
      return Optional.empty();
    }
    if (!next.get().isAfter(from)) {
      throw new IllegalStateException(
          "the schedule of timer '%s' returned %s for what comes after %s; it must return a later instant"
              .formatted(timer.name(), next.get(), from));
    }
    return next.map(Instants::wholeMicros)
        .filter(instant -> timer.end().map(end -> !instant.isAfter(end)).orElse(true));
  }

  /** Whatever a schedule throws is to stop that timer alone. */
  private static Optional<Instant> ofSchedule(Timer timer, Instant from) {
    try {
      return timer.schedule().next(from);
    } catch (RuntimeException e) {
      throw e;
    } catch (Throwable e) { // an Error, or a checked exception of another language
      throw new IllegalStateException(
          "the schedule of timer '%s' fails".formatted(timer.name()), e);
    }
  }

  /** As the database has it; never earlier, so that it is not due before its time. */
  private static Instant wholeMicros(Instant instant) {
    Instant cut = instant.truncatedTo(ChronoUnit.MICROS);
    return cut.equals(instant) ? cut : cut.plus(1, ChronoUnit.MICROS);
  }

  /**
   * Describes what a timer's instants depend on: nodes that have the same take care of it together.
   *
   * @param timer the timer
   * @return the description of its schedule, its start and its end
   */
  public static String description(Timer timer) {
    return timer.schedule().description()
        + timer.start().map(start -> ", starting at " + start).orElse("")
        + timer.end().map(end -> ", ending at " + end).orElse("");
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
