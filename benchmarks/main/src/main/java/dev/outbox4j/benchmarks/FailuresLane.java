package dev.outbox4j.benchmarks;

import dev.outbox4j.benchmarks.DrainLane.Drain;
import java.sql.SQLException;
import java.util.List;
import java.util.Map;

/** A drain in which one message in ten fails twice and one in a hundred is dead-lettered. */
final class FailuresLane implements Lane {
  private static final String NONE = "failures %d x 256 B, none";
  private static final String SOME = "failures %d x 256 B, 10 %% twice, 1 %% for good";

  @Override
  public String name() {
    return "failures";
  }

  @Override
  public void run(Run run) throws SQLException {
    List<Entrant> entrants = Roster.asked(List.of(Roster.TWIN, Roster.OURS));
    for (int round = 0; round < Settings.rounds() && !run.over(); round++) {
      for (int rows : Settings.numbers("rows", "1m")) {
        run.turn(
            NONE.formatted(rows),
            round,
            entrants,
            (entrant, database) -> new Drain(run, entrant, database).measure(rows, 256, 1, false));
        run.turn(
            SOME.formatted(rows),
            round,
            entrants,
            (entrant, database) -> new Drain(run, entrant, database).measure(rows, 256, 1, true));
      }
    }
  }

  @Override
  public void figures(Results results, Map<String, Figure> figures) {
    String label = Roster.OURS.label();
    results
        .ratio(SOME.formatted(1_000_000), label, NONE.formatted(1_000_000), label, "rate")
        .ifPresent(value -> figures.put("failures_vs_none", value));
    results
        .ratio(
            SOME.formatted(1_000_000),
            label,
            SOME.formatted(1_000_000),
            Roster.TWIN.label(),
            "rate")
        .ifPresent(value -> figures.put("failures_vs_twin", value));
  }
}
