package dev.outbox4j.benchmarks;

import dev.outbox4j.benchmarks.DrainLane.Drain;
import dev.outbox4j.benchmarks.spi.Numbers;
import java.io.IOException;
import java.sql.Connection;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.List;
import java.util.Map;

/** A drain while another transaction, open since before it, keeps dead rows from being removed. */
final class XminLane implements Lane {
  private static final String FREE = "xmin %d x 256 B, no other transaction";
  private static final String HELD = "xmin %d x 256 B, a transaction open throughout";

  @Override
  public String name() {
    return "xmin";
  }

  @Override
  public void run(Run run) throws SQLException {
    List<Entrant> entrants = Roster.asked(List.of(Roster.TWIN, Roster.OURS));
    for (int round = 0; round < Settings.rounds() && !run.over(); round++) {
      for (int rows : Settings.numbers("rows", "1m")) {
        run.turn(
            FREE.formatted(rows),
            round,
            entrants,
            (entrant, database) -> new Drain(run, entrant, database).measure(rows, 256, 1, false));
        run.turn(
            HELD.formatted(rows),
            round,
            entrants,
            (entrant, database) -> held(run, entrant, database, rows));
      }
    }
  }

  private static Numbers held(Run run, Entrant entrant, String database, int rows)
      throws IOException, SQLException {
    try (Connection holder = run.server().connect(database);
        Statement statement = holder.createStatement()) {
      statement.execute("begin isolation level repeatable read");
      // the first statement takes the snapshot that all later work is behind
      statement.execute("select count(*) from pg_class");
      return new Drain(run, entrant, database).measure(rows, 256, 1, false);
    }
  }

  @Override
  public void figures(Results results, Map<String, Figure> figures) {
    results
        .ratio(
            HELD.formatted(1_000_000),
            Roster.OURS.label(),
            FREE.formatted(1_000_000),
            Roster.OURS.label(),
            "rate")
        .ifPresent(value -> figures.put("xmin_held_vs_free", value));
    String held = HELD.formatted(1_000_000);
    results
        .ratio(held, Roster.OURS.label(), held, Roster.TWIN.label(), "rate")
        .ifPresent(value -> figures.put("xmin_held_vs_twin", value));
  }
}
