package dev.outbox4j.benchmarks;

import dev.outbox4j.benchmarks.spi.Numbers;
import java.io.IOException;
import java.sql.SQLException;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;

/**
 * A table whose rows change at a steady rate, and a poller in the same process that follows it:
 * latency, and whether its lag is what it tells. About a thousand transactions a second.
 */
final class PollersLane implements Lane {
  private static final int TRANSACTIONS = 1_000;
  private static final int FIGURE = 5_000;

  /** For so long the compiler takes a processor, of the two that there may be. */
  private static final int WARM_UP_SECONDS = 30;

  private static final int SECONDS = 60;

  @Override
  public String name() {
    return "pollers";
  }

  static String cell(int rate) {
    return "pollers, %d row changes a second, %d in a transaction".formatted(rate, batch(rate));
  }

  private static int batch(int rate) {
    return Math.max(1, rate / TRANSACTIONS);
  }

  @Override
  public void run(Run run) throws SQLException {
    for (int round = 0; round < Settings.rounds() && !run.over(); round++) {
      List<Entrant> all = new ArrayList<>(List.of(Roster.POLLERS));
      if (Rounds.FIRST.include(round)) {
        all.addAll(Roster.OTHER_POLLERS);
      }
      for (int rate : Settings.numbers("rates", "5k")) {
        run.turn(
            cell(rate),
            round,
            Roster.asked(all),
            (entrant, database) ->
                follow(run, entrant, database, rate, Settings.number("seconds", SECONDS)));
      }
    }
  }

  private static Numbers follow(Run run, Entrant entrant, String database, int rate, int seconds)
      throws IOException, SQLException {
    try (ContestantJvm jvm = run.start(entrant, database)) {
      jvm.perform("prepare");
      jvm.perform(task(rate, Settings.number("warmup.seconds", WARM_UP_SECONDS)));
      try (Watch watch = new Watch(run.server(), database)) {
        Numbers numbers = jvm.perform(task(rate, seconds));
        watch.read(numbers, Parts.value(numbers, "messages"));
        return numbers;
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
    String label = Roster.POLLERS.label();
    results
        .median(cell, label, "latency_p99_ms")
        .ifPresent(value -> figures.put("poller_5k_p99_ms", value));
    results
        .median(cell, label, "lag_error_share")
        .ifPresent(value -> figures.put("poller_5k_lag_error_share", value));
  }
}
