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
              field(0, 59, true),
              field(0, 59, true),
              field(0, 23, true),
              random.nextInt(3) > 0 ? "*" : field(1, 31, true),
              random.nextInt(3) > 0 ? "*" : month(),
              random.nextInt(3) > 0 ? "*" : weekday());
      if (new CronMatcher(expression).matchesSomeDay()) {
        return expression;
      }
    }
  }

  private String month() {
    return random.nextBoolean()
        ? field(1, 12, true)
        : field(1, 12, true, month -> MONTHS.get(month - 1));
  }

  /** Sunday by its name is the last day, as no range by names begins with it. */
  private String weekday() {
    return random.nextBoolean()
        ? field(0, 7, false)
        : field(1, 7, false, day -> WEEKDAYS.get(day - 1));
  }

  /** With the second 0 and hours of the night, in which clocks are changed. */
  String ofTheNight() {
    return String.join(
        " ",
        "0",
        field(0, 59, true),
        random.nextBoolean() ? "*" : field(0, 4, true),
        "*",
        "*",
        "*");
  }

  private String field(int lowest, int highest, boolean steps) {
    return field(lowest, highest, steps, String::valueOf);
  }

  private String field(int lowest, int highest, boolean steps, IntFunction<String> text) {
    return switch (random.nextInt(4)) {
      case 0 -> "*" + (steps && random.nextBoolean() ? "/" + (1 + random.nextInt(highest)) : "");
      case 1 ->
          IntStream.rangeClosed(0, random.nextInt(3))
              .mapToObj(nth -> text.apply(value(lowest, highest)))
              .collect(Collectors.joining(","));
      case 2 -> {
        int first = value(lowest, highest);
        int last = value(first, highest);
        yield text.apply(first)
            + "-"
            + text.apply(last)
            + (steps && random.nextBoolean() ? "/" + (1 + random.nextInt(9)) : "");
      }
      default -> text.apply(value(lowest, highest));
    };
  }

  private int value(int lowest, int highest) {
    return lowest + random.nextInt(highest - lowest + 1);
  }
}
