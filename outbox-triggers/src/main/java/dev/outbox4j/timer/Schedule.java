package dev.outbox4j.timer;

import java.time.DayOfWeek;
import java.time.Duration;
import java.time.Instant;
import java.time.LocalTime;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/**
 * The instants at which something is due. Implementations are immutable and thread-safe, and answer
 * the same on every node: what they return depends on the question alone.
 *
 * <p>Instants count in microseconds, as the database has them: a finer one is taken for the next
 * whole one. Of your own schedule, {@link #next} is asked with the instant it returned before, so
 * an instant that depends on the clock, or on chance, would run on some nodes and not on others.
 */
public interface Schedule {
  /**
   * Returns the first instant after another.
   *
   * @param after the instant before; it is not returned itself
   * @return an instant strictly after it; empty if there is none any more
   */
  Optional<Instant> next(Instant after);

  /**
   * Describes the schedule in one line, for logs and queries, and to tell whether a timer's
   * definition has changed: two schedules with the same description must have the same instants.
   *
   * @return the description; the same in every process and every release that means the same
   */
  String description();

  /**
   * Returns a schedule by a cron expression: six fields {@code second minute hour day month
   * weekday}, or five, without the second, which is 0 then. In UTC, until {@link CivilSchedule#in}
   * says otherwise.
   *
   * <p>Fields have values, ranges {@code a-b}, lists {@code a,b}, steps {@code /n} after {@code *}
   * or a range, and {@code *}. Months and weekdays may be named by three letters. Weekdays go from
   * 0 to 6; 0 and 7 are Sunday. The day of the month <em>and</em> the weekday must match, as in <a
   * href="https://github.com/atifaziz/NCrontab">NCrontab</a>.
   *
   * @param expression the expression
   * @return the schedule
   * @throws IllegalArgumentException if the number of fields is wrong, a field is not valid or out
   *     of its range, or no instant matches at all
   */
  static CivilSchedule cron(String expression) {
    return CivilSchedule.of(CronTimes.parse(expression));
  }

  /**
   * Returns a schedule with the same distance between all instants, whatever the clocks on walls
   * do: the instants are the multiples of the interval since 1970-01-01T00:00:00Z.
   *
   * @param interval the distance, from 1 ms to 1,000 years, in whole microseconds
   * @return the schedule
   * @throws IllegalArgumentException if the interval is out of range, or not in whole microseconds
   */
  static Schedule every(Duration interval) {
    return every(interval, Instant.EPOCH);
  }

  /**
   * Returns a schedule with the same distance between all instants, whatever the clocks on walls
   * do.
   *
   * @param interval the distance, from 1 ms to 1,000 years, in whole microseconds
   * @param anchor one of the instants, in whole microseconds; there are instants before it, too
   * @return the schedule
   * @throws IllegalArgumentException if the interval is out of range, the anchor is more than
   *     10,000 years from 1970, or one of them is not in whole microseconds
   */
  static Schedule every(Duration interval, Instant anchor) {
    return new ConstantInterval(interval, anchor);
  }

  /**
   * Returns a schedule at the same times of every day. In UTC, until {@link CivilSchedule#in} says
   * otherwise.
   *
   * @param first a time of day, in whole seconds
   * @param more others; one that is named twice counts once
   * @return the schedule
   * @throws IllegalArgumentException if a time has a fraction of a second
   */
  static CivilSchedule daily(LocalTime first, LocalTime... more) {
    List<LocalTime> times = Stream.concat(Stream.of(first), Stream.of(more)).toList();
    return weekly(
        Stream.of(DayOfWeek.values()).collect(Collectors.toMap(day -> day, day -> times)));
  }

  /**
   * Returns a schedule at the same time of one weekday. In UTC, until {@link CivilSchedule#in} says
   * otherwise.
   *
   * @param day the weekday
   * @param time the time of day, in whole seconds
   * @return the schedule
   * @throws IllegalArgumentException if the time has a fraction of a second
   */
  static CivilSchedule weekly(DayOfWeek day, LocalTime time) {
    return weekly(Map.of(day, List.of(time)));
  }

  /**
   * Returns a schedule at times of their own for each weekday. In UTC, until {@link
   * CivilSchedule#in} says otherwise.
   *
   * @param times the times of day, in whole seconds, of each weekday that has any; one that is
   *     named twice counts once
   * @return the schedule
   * @throws IllegalArgumentException if a time has a fraction of a second, or no weekday has any
   */
  static CivilSchedule weekly(Map<DayOfWeek, List<LocalTime>> times) {
    return CivilSchedule.of(WeekTimes.of(times));
  }
}
