package dev.outbox4j.timer;

import java.util.List;
import java.util.Random;
import java.util.function.IntFunction;
import java.util.stream.Collectors;
import java.util.stream.IntStream;

/** Makes cron expressions. */
final class RandomCron {
  static final List<String> MONTHS =
      List.of("JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC");
  static final List<String> WEEKDAYS = List.of("MON", "TUE", "WED", "THU", "FRI", "SAT", "SUN");

  private final Random random;

  RandomCron(Random random) {
    this.random = random;
  }

  /** With any values, and names of months and weekdays; it matches some day. */
  String any() {
    while (true) {
      String expression =
          String.join(
              " ",
              field(0, 59),
              field(0, 59),
              field(0, 23),
              random.nextInt(3) > 0 ? "*" : field(1, 31),
              random.nextInt(3) > 0 ? "*" : month(),
              random.nextInt(3) > 0 ? "*" : weekday());
      if (new CronMatcher(expression).matchesSomeDay()) {
        return expression;
      }
    }
  }

  private String month() {
    return random.nextBoolean() ? field(1, 12) : field(1, 12, month -> MONTHS.get(month - 1));
  }

  /** Sunday is the first day and the last one. */
  private String weekday() {
    return random.nextBoolean() ? field(0, 7) : field(0, 7, day -> WEEKDAYS.get((day + 6) % 7));
  }

  /** With the second 0 and hours of the night, in which clocks are changed. */
  String ofTheNight() {
    return String.join(
        " ", "0", field(0, 59), random.nextBoolean() ? "*" : field(0, 4), "*", "*", "*");
  }

  private String field(int lowest, int highest) {
    return field(lowest, highest, String::valueOf);
  }

  private String field(int lowest, int highest, IntFunction<String> text) {
    if (random.nextInt(5) == 0) {
      return "*";
    }
    return IntStream.rangeClosed(0, random.nextInt(3))
        .mapToObj(nth -> part(lowest, highest, text))
        .collect(Collectors.joining(","));
  }

  private String part(int lowest, int highest, IntFunction<String> text) {
    return switch (random.nextInt(5)) {
      case 0 -> "*" + step(highest);
      case 1 -> text.apply(value(lowest, highest - 1)) + step(highest);
      case 2 -> range(lowest, highest, text);
      case 3 -> range(lowest, highest, text) + step(highest);
      default -> text.apply(value(lowest, highest));
    };
  }

  private String range(int lowest, int highest, IntFunction<String> text) {
    int first = value(lowest, highest);
    return text.apply(first) + "-" + text.apply(value(first, highest));
  }

  private String step(int highest) {
    return "/" + (1 + random.nextInt(highest - 1));
  }

  private int value(int lowest, int highest) {
    return lowest + random.nextInt(highest - lowest + 1);
  }
}
