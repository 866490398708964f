package dev.outbox4j.timer;

import java.time.DayOfWeek;
import java.time.LocalDate;
import java.time.LocalDateTime;
import java.time.LocalTime;
import java.time.temporal.ChronoUnit;
import java.util.Collections;
import java.util.EnumMap;
import java.util.List;
import java.util.Map;
import java.util.NavigableSet;
import java.util.Optional;
import java.util.TreeSet;
import java.util.stream.Collectors;

/** Times of day, of each weekday its own. */
final class WeekTimes implements CivilTimes {
  private static final int DAYS = DayOfWeek.values().length;

  private final Map<DayOfWeek, NavigableSet<LocalTime>> times = new EnumMap<>(DayOfWeek.class);

  private WeekTimes() {}

  static WeekTimes of(Map<DayOfWeek, List<LocalTime>> times) {
    WeekTimes week = new WeekTimes();
    times.forEach(
        (day, ofDay) -> {
          ofDay.forEach(WeekTimes::requireWholeSeconds);
          if (!ofDay.isEmpty()) {
            week.times.put(day, Collections.unmodifiableNavigableSet(new TreeSet<>(ofDay)));
          }
        });
    if (week.times.isEmpty()) {
      throw new IllegalArgumentException(
          "no weekday has a time of day; name one, or it would never be due");
    }
    return week;
  }

  private static void requireWholeSeconds(LocalTime time) {
    if (!time.truncatedTo(ChronoUnit.SECONDS).equals(time)) {
      throw new IllegalArgumentException(
          "time of day is " + time + "; it must be in whole seconds, so drop the fraction");
    }
  }

  @Override
  public Optional<LocalDateTime> next(LocalDateTime after) {
    LocalDate day = after.toLocalDate();
    NavigableSet<LocalTime> today = times.get(day.getDayOfWeek());
    LocalTime later = today == null ? null : today.higher(after.toLocalTime());
    if (later != null) {
      return Optional.of(day.atTime(later));
    }
    for (int i = 1; i <= DAYS; i++) {
      NavigableSet<LocalTime> ofDay = times.get(day.plusDays(i).getDayOfWeek());
      if (ofDay != null) {
        return Optional.of(day.plusDays(i).atTime(ofDay.first()));
      }
    }
    throw new IllegalStateException("a week without a time of day");
  }

  @Override
  public boolean isInterval() {
    return false;
  }

  @Override
  public String description() {
    return times.entrySet().stream()
        .map(entry -> entry.getKey() + " " + entry.getValue())
        .collect(Collectors.joining(", ", "weekly ", ""));
  }
}
