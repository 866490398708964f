package dev.outbox4j.timer;

import java.time.DateTimeException;
import java.time.Duration;
import java.time.Instant;
import java.time.LocalDateTime;
import java.time.ZoneId;
import java.time.ZoneOffset;
import java.time.zone.ZoneOffsetTransition;
import java.time.zone.ZoneRules;
import java.util.Objects;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/**
 * A schedule by what clocks on walls show in a zone. Immutable.
 *
 * <p>Where clocks are set forward, times are left out (a gap); where they are set back, times come
 * twice (an overlap). By default what would have been due in a gap is due as much later as the gap
 * is long, so 02:30 at 03:30, and once if that is due anyway. In an overlap a cron expression with
 * a {@code *}, {@code /} or {@code -} in second, minute or hour is due in both copies, everything
 * else once, in the first.
 */
public final class CivilSchedule implements Schedule {
  /** What becomes of times that clocks leave out. */
  public enum Gap {
    /** They are due as much later as the gap is long. */
    MOVE,
    /** They are not due that day. */
    SKIP
  }

  /** In which copy times are due that clocks show twice. */
  public enum Overlap {
    /** In the first one only. */
    FIRST,
    /** In both. */
    BOTH
  }

  private static final Duration INSTANT = Duration.ofNanos(1);

  private final CivilTimes times;
  private final ZoneId zone;
  private final Gap gap;
  private final @Nullable Overlap overlap;

  private CivilSchedule(CivilTimes times, ZoneId zone, Gap gap, @Nullable Overlap overlap) {
    this.times = times;
    this.zone = zone;
    this.gap = gap;
    this.overlap = overlap;
  }

  static CivilSchedule of(CivilTimes times) {
    return new CivilSchedule(times, ZoneOffset.UTC, Gap.MOVE, null);
  }

  /**
   * Returns the same in another zone.
   *
   * @param zone the zone whose clocks count; default UTC
   * @return the schedule
   */
  public CivilSchedule in(ZoneId zone) {
    return new CivilSchedule(times, Objects.requireNonNull(zone, "zone"), gap, overlap);
  }

  /**
   * Returns the same with another rule for times that clocks leave out.
   *
   * @param gap the rule; default {@link Gap#MOVE}
   * @return the schedule
   */
  public CivilSchedule gap(Gap gap) {
    return new CivilSchedule(times, zone, Objects.requireNonNull(gap, "gap"), overlap);
  }

  /**
   * Returns the same with another rule for times that clocks show twice.
   *
   * @param overlap the rule; default {@link Overlap#BOTH} for a cron expression with a {@code *},
   *     {@code /} or {@code -} in second, minute or hour, else {@link Overlap#FIRST}
   * @return the schedule
   */
  public CivilSchedule overlap(Overlap overlap) {
    return new CivilSchedule(times, zone, gap, Objects.requireNonNull(overlap, "overlap"));
  }

  private Overlap overlap() {
    if (overlap != null) {
      return overlap;
    }
    return times.isInterval() ? Overlap.BOTH : Overlap.FIRST;
  }

  /** {@return whether every minute has several instants} */
  boolean isOfSeconds() {
    return times instanceof CronTimes cron && cron.isOfSeconds();
  }

  @Override
  public Optional<Instant> next(Instant after) {
    try {
      return Optional.ofNullable(search(after));
    } catch (DateTimeException e) {
      return Optional.empty(); // beyond what an instant can be
    }
  }

  /** From one change of the clocks to the next: between two of them each time comes once. */
  private @Nullable Instant search(Instant after) {
    ZoneRules rules = zone.getRules();
    ZoneOffset offset = rules.getOffset(after);
    LocalDateTime local = LocalDateTime.ofInstant(after, offset);
    ZoneOffsetTransition begin = rules.previousTransition(after.plus(INSTANT));
    ZoneOffsetTransition end = rules.nextTransition(after);
    @Nullable Instant moved = firstMoved(begin, after);
    while (true) {
      Optional<LocalDateTime> time = times.next(behindSecondCopy(begin, local));
      if (time.isEmpty()) {
        return moved;
      }
      Instant due = earlier(moved, time.get().toInstant(offset));
      if (end == null || due.isBefore(end.getInstant())) {
        return due;
      }
      begin = end;
      offset = begin.getOffsetAfter();
      local = begin.getDateTimeAfter().minus(INSTANT);
      end = rules.nextTransition(begin.getInstant());
      moved = moved == null ? firstMoved(begin, after) : moved;
    }
  }

  /** What was shown before the clocks were set back, and is shown again since, is passed over. */
  private LocalDateTime behindSecondCopy(
      @Nullable ZoneOffsetTransition begin, LocalDateTime local) {
    if (begin == null || !begin.isOverlap() || overlap() == Overlap.BOTH) {
      return local;
    }
    return later(local, begin.getDateTimeBefore().minus(INSTANT));
  }

  /** The first instant after another of those that a gap moves. */
  private @Nullable Instant firstMoved(@Nullable ZoneOffsetTransition change, Instant after) {
    if (change == null || !change.isGap() || gap == Gap.SKIP) {
      return null;
    }
    ZoneOffset before = change.getOffsetBefore();
    LocalDateTime start = change.getDateTimeBefore().minus(INSTANT);
    return times
        .next(later(start, LocalDateTime.ofInstant(after, before)))
        .filter(time -> time.isBefore(change.getDateTimeAfter()))
        .map(time -> time.toInstant(before))
        .orElse(null);
  }

  private static Instant earlier(@Nullable Instant one, Instant other) {
    return one != null && one.isBefore(other) ? one : other;
  }

  private static LocalDateTime later(LocalDateTime one, LocalDateTime other) {
    return one.isAfter(other) ? one : other;
  }

  @Override
  public String description() {
    return "%s in %s, gap %s, overlap %s".formatted(times.description(), zone, gap, overlap());
  }

  @Override
  public String toString() {
    return description();
  }
}
