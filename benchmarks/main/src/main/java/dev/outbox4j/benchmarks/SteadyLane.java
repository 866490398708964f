package dev.outbox4j.benchmarks;

import dev.outbox4j.benchmarks.spi.Numbers;
import java.io.IOException;
import java.sql.SQLException;
import java.util.List;
import java.util.Map;

/** Writers at a steady rate, subscriber in the same process: latency and slope of the backlog. */
final class SteadyLane implements Lane {
  private static final String CELL = "steady %d per second, 256 B";

  @Override
  public String name() {
    return "steady";
  }

  @Override
  public void run(Run run) throws SQLException {
    for (int round = 0; round < Settings.rounds() && !run.over(); round++) {
      for (int rate : Settings.numbers("rates", "1k,5k,10k")) {
        boolean minor = rate != 5000;
        if (!minor || Settings.minor(round)) {
          int seconds = Settings.number("seconds", minor ? 20 : 60);
          run.turn(
              CELL.formatted(rate),
              round,
              Roster.asked(minor ? List.of(Roster.TWIN, Roster.OURS) : List.of(Roster.OURS)),
              (entrant, database) -> steady(run, entrant, database, rate, seconds));
        }
      }
    }
  }

  private static Numbers steady(Run run, Entrant entrant, String database, int rate, int seconds)
      throws IOException, SQLException {
    try (ContestantJvm jvm = run.start(entrant, database)) {
      jvm.perform("prepare");
      try (Watch watch = new Watch(run.server(), database)) {
        Numbers numbers =
            jvm.perform(
                "steady 256 %d %d %d".formatted(rate, seconds, Settings.number("writers", 8)));
        return watch.read(numbers, numbers.values().getOrDefault("messages", 1.0));
      }
    }
  }

  @Override
  public void figures(Results results, Map<String, Double> figures) {
    String cell = CELL.formatted(5000);
    results
        .median(cell, Roster.OURS.label(), "latency_p99_ms")
        .ifPresent(value -> figures.put("steady_5k_p99_ms", value));
    results
        .median(cell, Roster.OURS.label(), "backlog_slope_per_s")
        .ifPresent(value -> figures.put("steady_5k_backlog_slope_per_s", value));
  }
}
