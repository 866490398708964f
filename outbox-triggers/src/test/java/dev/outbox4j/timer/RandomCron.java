package dev.outbox4j.timer;

import java.util.Random;
import java.util.stream.Collectors;
import java.util.stream.IntStream;

/** Makes cron expressions of numbers. */
final class RandomCron {
  private final Random random;

  RandomCron(Random random) {
    this.random = random;
  }

  /** With any values. */
  String any() {
    return String.join(
        " ",
        field(0, 59, true),
        field(0, 59, true),
        field(0, 23, true),
        random.nextInt(3) > 0 ? "*" : field(1, 28, true),
        random.nextInt(3) > 0 ? "*" : field(1, 12, true),
        random.nextInt(3) > 0 ? "*" : field(0, 7, false));
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
    return switch (random.nextInt(4)) {
      case 0 -> "*" + (steps && random.nextBoolean() ? "/" + (1 + random.nextInt(highest)) : "");
      case 1 ->
          IntStream.rangeClosed(0, random.nextInt(3))
              .mapToObj(nth -> String.valueOf(value(lowest, highest)))
              .collect(Collectors.joining(","));
      case 2 -> {
        int first = value(lowest, highest);
        int last = value(first, highest);
        yield first
            + "-"
            + last
            + (steps && random.nextBoolean() ? "/" + (1 + random.nextInt(9)) : "");
      }
      default -> String.valueOf(value(lowest, highest));
    };
  }

  private int value(int lowest, int highest) {
    return lowest + random.nextInt(highest - lowest + 1);
  }
}
