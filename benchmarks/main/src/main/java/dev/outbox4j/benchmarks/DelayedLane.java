package dev.outbox4j.benchmarks;

import dev.outbox4j.benchmarks.spi.Numbers;
import java.io.IOException;
import java.sql.SQLException;
import java.util.List;
import java.util.Map;

/** Messages due at random instants within ten seconds: how late each is. */
final class DelayedLane implements Lane {
  private static final String CELL = "delayed, %d due within 10 s";

  @Override
  public String name() {
    return "delayed";
  }

  @Override
  public void run(Run run) throws SQLException {
    int messages = Settings.number("messages", 10_000);
    for (int round = 0; round < Settings.rounds() && !run.over(); round++) {
      run.turn(
          CELL.formatted(messages),
          round,
          Roster.asked(List.of(Roster.TWIN, Roster.OURS)),
          (entrant, database) -> delayed(run, entrant, database, messages));
    }
  }

  private static Numbers delayed(Run run, Entrant entrant, String database, int messages)
      throws IOException, SQLException {
    try (ContestantJvm jvm = run.start(entrant, database)) {
      jvm.perform("prepare");
      try (Watch watch = new Watch(run.server(), database)) {
        return Completeness.left(
            jvm, watch.read(jvm.perform("delayed 256 " + messages + " 10"), messages));
      }
    }
  }

  @Override
  public void figures(Results results, Map<String, Figure> figures) {
    results
        .median(CELL.formatted(10_000), Roster.OURS.label(), "lateness_p99_ms")
        .ifPresent(value -> figures.put("lateness_p99_ms", value));
  }
}
