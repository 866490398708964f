package dev.outbox4j.benchmarks;

import dev.outbox4j.benchmarks.DrainLane.Drain;
import java.sql.SQLException;
import java.util.List;
import java.util.Map;
import java.util.Optional;

/**
 * What the tables and indexes of optional features cost a subscriber that uses none of them: beside
 * all of them and without, by pairs, in each round one right after the other.
 */
final class UnusedTablesLane implements Lane {
  private static final String DRAIN = "unused tables, drain";
  private static final String IDLE = "unused tables, idle";
  private static final List<String> CPU =
      List.of("cpu_us_per_message", "server_cpu_us_per_message");

  @Override
  public String name() {
    return "unused-tables";
  }

  @Override
  public boolean inAll() {
    return false;
  }

  @Override
  public void run(Run run) throws SQLException {
    int rows = Settings.numbers("rows", "1m").get(0);
    int messages = Settings.number("messages", 500);
    for (int round = 0; round < Settings.rounds() && !run.over(); round++) {
      run.turn(
          DRAIN,
          round,
          List.of(Roster.OURS, Roster.BESIDE_UNUSED_TABLES),
          (entrant, database) -> new Drain(run, entrant, database).measure(rows, 256, 1, false));
      run.turn(
          IDLE,
          round,
          List.of(Roster.OURS, Roster.BESIDE_UNUSED_TABLES),
          (entrant, database) -> IdleLane.oneByOne(run, entrant, database, messages));
    }
  }

  /** Of each pair the quotient: beside them by without. */
  @Override
  public void figures(Results results, Map<String, Figure> figures) {
    pair(results, DRAIN, "rate").ifPresent(each -> figures.put("unused_tables_drain_rate", each));
    pair(results, IDLE, "latency_p50_ms")
        .ifPresent(each -> figures.put("unused_tables_idle_p50", each));
    for (String metric : CPU) {
      pair(results, DRAIN, metric)
          .ifPresent(each -> figures.put("unused_tables_drain_" + metric, each));
    }
  }

  private static Optional<Figure> pair(Results results, String cell, String metric) {
    return results.ratio(
        cell, Roster.BESIDE_UNUSED_TABLES.label(), cell, Roster.OURS.label(), metric);
  }
}
