package dev.outbox4j.benchmarks;

import dev.outbox4j.benchmarks.spi.Numbers;
import java.io.IOException;
import java.sql.SQLException;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;

/**
 * Dead letters that are put back at a rate: how near it comes to the one that was asked for, all in
 * all and in each ten seconds.
 */
final class RedriveLane implements Lane {
  private static final int LETTERS = 100_000;
  private static final int RATE = 1_000;
  private static final int BYTES = 256;

  @Override
  public String name() {
    return "redrive";
  }

  static String cell(int letters, int rate) {
    return "redrive, %d x %d B at %d a second".formatted(letters, BYTES, rate);
  }

  @Override
  public void run(Run run) throws SQLException {
    int letters = Settings.number("messages", LETTERS);
    for (int round = 0; round < Settings.rounds() && !run.over(); round++) {
      List<Entrant> all = new ArrayList<>(List.of(Roster.REDRIVE));
      if (Rounds.FIRST.include(round)) {
        all.add(Roster.REDRIVE_WITHOUT_POOL);
      }
      for (int rate : Settings.numbers("rates", "1k")) {
        run.turn(
            cell(letters, rate),
            round,
            Roster.asked(all),
            (entrant, database) -> redrive(run, entrant, database, letters, rate));
      }
    }
  }

  private static Numbers redrive(Run run, Entrant entrant, String database, int letters, int rate)
      throws IOException, SQLException {
    try (ContestantJvm jvm = run.start(entrant, database)) {
      jvm.perform("prepare");
      jvm.perform("load-dead %d %d".formatted(letters, BYTES));
      try (Watch watch = new Watch(run.server(), database)) {
        Numbers numbers = jvm.perform("redrive %d %d".formatted(letters, rate));
        return watch.read(numbers, Parts.value(numbers, "messages"));
      }
    }
  }

  @Override
  public void figures(Results results, Map<String, Figure> figures) {
    String cell = cell(LETTERS, RATE);
    String label = Roster.REDRIVE.label();
    results
        .median(cell, label, "rate_vs_asked")
        .ifPresent(value -> figures.put("redrive_rate_vs_asked", value));
    results
        .median(cell, label, "slowest_10s_vs_asked")
        .ifPresent(value -> figures.put("redrive_slowest_10s_vs_asked", value));
    results
        .greatest(cell, label, "fastest_10s_vs_asked")
        .ifPresent(value -> figures.put("redrive_fastest_10s_vs_asked", value));
  }
}
