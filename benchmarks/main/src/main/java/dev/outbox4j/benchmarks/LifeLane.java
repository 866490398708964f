package dev.outbox4j.benchmarks;

import dev.outbox4j.benchmarks.spi.Numbers;
import java.io.IOException;
import java.sql.SQLException;
import java.util.List;
import java.util.Map;

/** The WAL of messages from publishing, in batches of 100 while all are awake, to the ack. */
final class LifeLane implements Lane {
  private static final String CELL = "life of %d x 256 B";

  @Override
  public String name() {
    return "life";
  }

  @Override
  public void run(Run run) throws SQLException {
    for (int round = 0; round < Settings.rounds() && !run.over(); round++) {
      for (int rows : Settings.numbers("rows", "100k")) {
        run.turn(
            CELL.formatted(rows),
            round,
            Roster.asked(List.of(Roster.TWIN, Roster.OURS)),
            (entrant, database) -> life(run, entrant, database, rows));
      }
    }
  }

  private static Numbers life(Run run, Entrant entrant, String database, int rows)
      throws IOException, SQLException {
    try (ContestantJvm jvm = run.start(entrant, database)) {
      jvm.perform("prepare");
      try (Watch watch = new Watch(run.server(), database)) {
        jvm.perform("fill 0 " + rows + " 256 100");
        Numbers numbers = jvm.perform("drain 0 " + rows + " 600 plain alone");
        return Completeness.of(List.of(jvm), rows, watch.read(numbers, rows));
      }
    }
  }

  @Override
  public void figures(Results results, Map<String, Figure> figures) {
    String cell = CELL.formatted(100_000);
    results
        .ratio(cell, Roster.OURS.label(), cell, Roster.TWIN.label(), "wal_bytes_per_message")
        .ifPresent(value -> figures.put("wal_vs_twin", value));
  }
}
