package dev.outbox4j.benchmarks;

import dev.outbox4j.benchmarks.spi.Numbers;
import java.io.IOException;
import java.io.PrintStream;
import java.sql.SQLException;
import java.time.LocalTime;
import java.time.ZoneOffset;
import java.time.temporal.ChronoUnit;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentHashMap;

/** A run of lanes: its server, its results, its progress, and its end. */
final class Run {
  private final Server server;
  private final Results results = new Results();
  private final Map<String, String> contracts = new ConcurrentHashMap<>();
  private final Map<String, String> failures = new ConcurrentHashMap<>();
  private final PrintStream out;
  private final long deadline;
  private volatile boolean cutShort;

  Run(Server server, PrintStream out) {
    this.server = server;
    this.out = out;
    this.deadline =
        System.nanoTime() + Settings.number("max.seconds", 1_000_000_000) * 1_000_000_000L;
  }

  Server server() {
    return server;
  }

  Results results() {
    return results;
  }

  Map<String, String> contracts() {
    return new TreeMap<>(contracts);
  }

  Map<String, String> failures() {
    return new TreeMap<>(failures);
  }

  /** Whether the time that the run was given is over. */
  boolean over() {
    return cutShort || System.nanoTime() >= deadline;
  }

  /** Ends the run; what fails from then on has no meaning. */
  void cutShort() {
    cutShort = true;
  }

  /** One measurement of one contestant in a database of its own. */
  interface Measurement {
    Numbers measure(Entrant entrant, String database) throws IOException, SQLException;
  }

  /**
   * Lets entrants take turns, once each: in another order every round, so that none always runs on
   * the server that another has warmed up or worn out.
   */
  void turn(String cell, int round, List<Entrant> entrants, Measurement measurement)
      throws SQLException {
    for (int i = 0; i < entrants.size(); i++) {
      Entrant entrant = entrants.get((i + round) % entrants.size());
      if (over()) {
        return;
      }
      String name = cell + " " + entrant.label();
      if (failures.containsKey(name)) {
        continue;
      }
      long start = System.nanoTime();
      String database = server.createDatabase();
      try {
        Numbers numbers = measurement.measure(entrant, database);
        results.add(cell, entrant.label(), numbers);
        progress(
            "%s round %d: %s: %s (%d s)",
            cell,
            round + 1,
            entrant.label(),
            Tables.headline(numbers),
            (System.nanoTime() - start) / 1_000_000_000);
      } catch (IOException | SQLException | RuntimeException e) {
        if (cutShort) {
          return;
        }
        // one that fails once is left out from then on; the others go on
        failures.put(name, String.valueOf(e.getMessage()));
        progress(
            "%s round %d: %s FAILED: %s",
            cell, round + 1, entrant.label(), String.valueOf(e.getMessage()));
      } finally {
        if (!cutShort) {
          server.dropDatabase(database);
        }
      }
    }
  }

  ContestantJvm start(Entrant entrant, String database) throws IOException {
    ContestantJvm jvm = new ContestantJvm(entrant, server, database);
    contracts.put(entrant.label(), jvm.contract());
    return jvm;
  }

  // the annotation that it asks for would be one more dependency
  @SuppressWarnings("AnnotateFormatMethod")
  void progress(String format, Object... arguments) {
    out.printf(
        "%s %s%n",
        LocalTime.now(ZoneOffset.UTC).truncatedTo(ChronoUnit.SECONDS), format.formatted(arguments));
  }
}
