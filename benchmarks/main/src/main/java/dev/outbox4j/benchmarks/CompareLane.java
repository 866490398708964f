package dev.outbox4j.benchmarks;

import dev.outbox4j.benchmarks.DrainLane.Drain;
import java.sql.SQLException;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.stream.Stream;

/**
 * This build against another one of this library, by pairs: in each round one right after the
 * other, each on a database that it has migrated itself. Only where {@code -Dbaseline=} names a
 * checkout.
 */
final class CompareLane implements Lane {
  private static final String OTHER = " of the baseline";
  private static final int STEADY_RATE = 5000;

  private static final List<String> LATENCY = List.of("latency_p50_ms", "latency_p99_ms");

  /** A writer that is stalled must not hide what stalls it. */
  private static final List<String> SCHEDULED = List.of("scheduled_p50_ms", "scheduled_p99_ms");

  /** What a message takes of processors, in the contestant's process and in the server's. */
  private static final List<String> CPU =
      List.of("cpu_us_per_message", "server_cpu_us_per_message");

  /** What is compared by which metrics. */
  private static final Map<String, List<String>> METRICS =
      new TreeMap<>(
          Map.of(
              "drain", withCpu(List.of("rate")),
              "steady", withCpu(SCHEDULED),
              "idle", withCpu(LATENCY),
              "wake", withCpu(LATENCY)));

  private static List<String> withCpu(List<String> metrics) {
    return Stream.concat(metrics.stream(), CPU.stream()).toList();
  }

  @Override
  public String name() {
    return "compare";
  }

  @Override
  public boolean inAll() {
    return false;
  }

  private static Entrant other(Entrant entrant) {
    return new Entrant(
        entrant.label() + OTHER, ClassPath.BASELINE, entrant.contestant(), entrant.options());
  }

  @Override
  public void run(Run run) throws SQLException {
    if (!ClassPath.exists(ClassPath.BASELINE)) {
      throw new IllegalStateException("the checkout at -Dbaseline= was not built");
    }
    int rows = Settings.numbers("rows", "1m").get(0);
    int messages = Settings.number("messages", 500);
    int seconds = Settings.number("seconds", 20);
    for (int round = 0; round < Settings.rounds() && !run.over(); round++) {
      pair(
          run,
          round,
          "drain",
          Roster.OURS,
          (entrant, database) -> new Drain(run, entrant, database).measure(rows, 256, 1, false));
      pair(
          run,
          round,
          "steady",
          Roster.OURS,
          (entrant, database) -> SteadyLane.steady(run, entrant, database, STEADY_RATE, seconds));
      pair(
          run,
          round,
          "idle",
          IdleLane.by("r2dbc"),
          (entrant, database) -> IdleLane.oneByOne(run, entrant, database, messages));
      pair(
          run,
          round,
          "wake",
          IdleLane.WOKEN,
          (entrant, database) ->
              IdleLane.afterBursts(run, entrant, database, Math.max(1, messages / 2)));
    }
  }

  private static void pair(
      Run run, int round, String part, Entrant entrant, Run.Measurement measurement)
      throws SQLException {
    if (Settings.list("parts", String.join(",", METRICS.keySet())).contains(part)) {
      run.turn(cell(part), round, List.of(other(entrant), entrant), measurement);
    }
  }

  static String cell(String part) {
    return "compare " + part;
  }

  /** Of each pair the quotient: this build's by the other's. */
  @Override
  public void figures(Results results, Map<String, Figure> figures) {
    METRICS.forEach(
        (part, metrics) -> metrics.forEach(metric -> pairs(results, part, metric, figures)));
  }

  private static void pairs(
      Results results, String part, String metric, Map<String, Figure> figures) {
    for (String label : results.cells().getOrDefault(cell(part), Map.of()).keySet()) {
      results
          .ratio(cell(part), label, cell(part), label + OTHER, metric)
          .ifPresent(figure -> figures.put("new_vs_old_" + part + "_" + metric, figure));
    }
  }
}
