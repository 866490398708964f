package dev.outbox4j.benchmarks;

import dev.outbox4j.benchmarks.ours.Outbox4j;
import dev.outbox4j.benchmarks.spi.Numbers;
import java.io.IOException;
import java.sql.SQLException;
import java.util.List;
import java.util.Map;

/**
 * Writers at a steady rate, subscriber in the same process: latency and slope of the backlog. About
 * a thousand transactions a second, so that it is not their commits that are measured.
 */
final class SteadyLane implements Lane {
  private static final int TRANSACTIONS = 1000;
  private static final int FIGURE = 5000;
  private static final int FASTEST = 10_000;

  /** For so long the compiler takes a processor, of the two that there may be. */
  private static final int WARM_UP_SECONDS = 30;

  @Override
  public String name() {
    return "steady";
  }

  @Override
  public void run(Run run) throws SQLException {
    for (int round = 0; round < Settings.rounds() && !run.over(); round++) {
      for (int rate : Settings.numbers("rates", "1k,5k,10k")) {
        if (hasFigure(rate) || Rounds.FIRST.include(round)) {
          int seconds = Settings.number("seconds", rate == FIGURE ? 60 : 20);
          run.turn(
              cell(rate),
              round,
              Roster.asked(
                  Rounds.FIRST.include(round)
                      ? List.of(Roster.TWIN, Roster.OURS)
                      : List.of(Roster.OURS)),
              (entrant, database) -> steady(run, entrant, database, rate, seconds));
        }
      }
    }
  }

  private static boolean hasFigure(int rate) {
    return rate == FIGURE || rate == FASTEST;
  }

  private static int batch(int rate) {
    return Math.max(1, rate / TRANSACTIONS);
  }

  static String cell(int rate) {
    return "steady %d x 256 B a second, %d in a transaction".formatted(rate, batch(rate));
  }

  static Numbers steady(Run run, Entrant entrant, String database, int rate, int seconds)
      throws IOException, SQLException {
    try (ContestantJvm jvm = run.start(entrant, database)) {
      jvm.perform("prepare");
      jvm.perform(task(rate, WARM_UP_SECONDS));
      try (Watch watch = new Watch(run.server(), database, Outbox4j.CHANNEL)) {
        Numbers numbers = jvm.perform(task(rate, seconds));
        return Completeness.left(
            jvm, watch.read(numbers, numbers.values().getOrDefault("messages", 1.0)));
      }
    }
  }

  private static String task(int rate, int seconds) {
    return "steady 256 %d %d %d %d"
        .formatted(rate, batch(rate), seconds, Settings.number("writers", 8));
  }

  @Override
  public void figures(Results results, Map<String, Figure> figures) {
    String cell = cell(FIGURE);
    results
        .median(cell, Roster.OURS.label(), "scheduled_p99_ms")
        .ifPresent(value -> figures.put("steady_5k_p99_ms", value));
    results
        .median(cell, Roster.OURS.label(), "latency_p99_ms")
        .ifPresent(value -> figures.put("steady_5k_p99_from_commit_ms", value));
    results
        .median(cell(FASTEST), Roster.OURS.label(), "scheduled_p99_ms")
        .ifPresent(value -> figures.put("steady_10k_p99_ms", value));
    results
        .median(cell, Roster.OURS.label(), "backlog_slope_per_s")
        .ifPresent(value -> figures.put("steady_5k_backlog_slope_per_s", value));
  }
}
