package dev.outbox4j.timer;

import java.time.LocalDateTime;
import java.time.Month;
import java.util.BitSet;
import java.util.List;

/** Tells by itself which times an expression matches, to compare with. */
final class CronMatcher {
  private static final int SUNDAY = 7; // and 0
  private static final int[] LOWEST = {0, 0, 0, 1, 1, 0};
  private static final int[] HIGHEST = {59, 59, 23, 31, 12, SUNDAY};
  private static final int DAY = 3;
  private static final int MONTH = 4;
  private static final int WEEKDAY = 5;

  private final BitSet[] fields = new BitSet[LOWEST.length];

  CronMatcher(String expression) {
    String[] texts = expression.split(" ", -1);
    for (int field = 0; field < fields.length; field++) {
      fields[field] = new BitSet();
      for (String part : texts[field].split(",", -1)) {
        add(field, part);
      }
    }
  }

  private void add(int field, String part) {
    String[] stepped = part.split("/", -1);
    String[] range = stepped[0].split("-", -1);
    boolean all = stepped[0].equals("*");
    boolean open = range.length == 1 && stepped.length == 2;
    int first = all ? LOWEST[field] : value(field, range[0]);
    int last = all || open ? HIGHEST[field] : value(field, range[range.length - 1]);
    if (field == WEEKDAY && first == SUNDAY && (open || last != SUNDAY)) {
      first = 0; // by its name it begins a week, too
    }
    int step = stepped.length == 1 ? 1 : Integer.parseInt(stepped[1]);
    for (int value = first; value <= last; value += step) {
      fields[field].set(field == WEEKDAY ? value % 7 : value);
    }
  }

  private static int value(int field, String text) {
    if (Character.isDigit(text.charAt(0))) {
      return Integer.parseInt(text);
    }
    List<String> names = field == MONTH ? RandomCron.MONTHS : RandomCron.WEEKDAYS;
    return 1 + names.indexOf(text);
  }

  /** Tells whether there is such a day in any year; each date falls on each weekday in some. */
  boolean matchesSomeDay() {
    int firstDay = fields[DAY].nextSetBit(0);
    return fields[MONTH].stream().anyMatch(month -> firstDay <= Month.of(month).maxLength());
  }

  boolean matches(LocalDateTime time) {
    List<Integer> values =
        List.of(
            time.getSecond(),
            time.getMinute(),
            time.getHour(),
            time.getDayOfMonth(),
            time.getMonthValue(),
            time.getDayOfWeek().getValue() % 7);
    for (int field = 0; field < fields.length; field++) {
      if (!fields[field].get(values.get(field))) {
        return false;
      }
    }
    return true;
  }
}
