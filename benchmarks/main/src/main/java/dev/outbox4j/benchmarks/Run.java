package dev.outbox4j.benchmarks;

import dev.outbox4j.benchmarks.spi.Numbers;
import java.io.IOException;
import java.io.PrintStream;
import java.sql.SQLException;
import java.time.LocalTime;
import java.time.ZoneOffset;
import java.time.temporal.ChronoUnit;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.Consumer;

/** A run of one lane: its results, its failures, its progress, and its end. */
final class Run {
  private final Server server;
  private final Results results = new Results();
  private final Map<String, String> contracts = new ConcurrentHashMap<>();
  private final Map<String, Entrant> entrants = new ConcurrentHashMap<>();
  private final Map<String, String> failures = new ConcurrentHashMap<>();
  private final PrintStream out;
  private final long deadline;
  private volatile boolean cutShort;
  private volatile boolean finished;
  private final AtomicBoolean reported = new AtomicBoolean();

  Run(Server server, PrintStream out, long deadline) {
    this.server = server;
    this.out = out;
    this.deadline = deadline;
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

  /** Who took part, by label. */
  Map<String, Entrant> entrants() {
    return new TreeMap<>(entrants);
  }

  Map<String, String> failures() {
    return new TreeMap<>(failures);
  }

  /** What keeps the results from being those of a full run. */
  List<String> amiss() {
    List<String> amiss = new ArrayList<>();
    if (Settings.shrunk()) {
      amiss.add("not with the settings of a full run");
    }
    if (!finished) {
      amiss.add("ended before its last round");
    }
    failures().forEach((what, why) -> amiss.add(what + " failed: " + why));
    return amiss;
  }

  /** Whether each round was measured, with the sizes of a full run, and nothing failed. */
  boolean isWhole() {
    return finished && failures.isEmpty() && !Settings.changesComparison();
  }

  /** Runs the lane; what goes wrong in one must not take the other lanes' results along. */
  void run(Lane lane) {
    try {
      lane.run(this);
      finished = !over();
    } catch (IOException | SQLException | RuntimeException e) {
      // on the way out the server goes first
      if (!cutShort) {
        failures.put("lane " + lane.name(), String.valueOf(e));
        progress("lane %s FAILED: %s", lane.name(), e);
      }
    }
  }

  /** Whether nobody has begun to report it, which the caller does now. */
  boolean beginReport() {
    return reported.compareAndSet(false, true);
  }

  /** Whether the time that the run was given is over. */
  boolean over() {
    return cutShort || System.nanoTime() >= deadline;
  }

  /** Ends the run; what fails from then on has no meaning. */
  void cutShort() {
    cutShort = true;
  }

  /** One measurement of one contestant. */
  interface Measurement {
    Numbers measure(Entrant entrant, String database) throws IOException, SQLException;
  }

  /** What several contestants do on one database. */
  interface Session {
    void hold(String database) throws IOException, SQLException;
  }

  /** One measurement of several contestants, which answers in their order. */
  interface JointMeasurement {
    List<Numbers> measure(List<Entrant> entrants, String database) throws IOException, SQLException;
  }

  /**
   * Lets entrants take turns, once each, and each on a database of its own: from another on every
   * second round, and the other way round in between, so that none always runs on the server that
   * the same other one has warmed up or worn out. The first round's order is that of the table.
   */
  void turn(String cell, int round, List<Entrant> entrants, Measurement measurement)
      throws SQLException {
    for (Entrant entrant : order(round, entrants)) {
      if (takesPart(cell, entrant)) {
        onADatabase(database -> measure(cell, round, entrant, database, measurement));
      }
    }
  }

  /**
   * Holds a session on a database of its own, unless one of the cell's has failed or the time is
   * over.
   */
  void session(String cell, int round, Session session) throws SQLException {
    if (!over() && !failures.containsKey(cell)) {
      onADatabase(
          database ->
              attempt(
                  cell,
                  round,
                  () -> {
                    session.hold(database);
                    return cell;
                  }));
    }
  }

  /**
   * Lets entrants take turns in a session: first each takes one that does not count, in which it is
   * compiled and the others' processes come to life.
   */
  void turnInSession(
      String cell, int round, List<Entrant> entrants, String database, Measurement measurement) {
    for (Entrant entrant : order(round, entrants)) {
      if (takesPart(cell, entrant)) {
        attempt(cell, round, entrant, database, measurement);
      }
    }
    for (Entrant entrant : order(round, entrants)) {
      if (takesPart(cell, entrant)) {
        measure(cell, round, entrant, database, measurement);
      }
    }
  }

  /** Measures entrants that work at the same time in a session, in the order of the round. */
  void atOnce(
      String cell, int round, List<Entrant> all, String database, JointMeasurement measurement)
      throws IOException, SQLException {
    long start = System.nanoTime();
    List<Entrant> entrants = order(round, all);
    List<Numbers> numbers = measurement.measure(entrants, database);
    for (Entrant entrant : all) {
      add(cell, round, entrant, numbers.get(entrants.indexOf(entrant)), start);
    }
  }

  private boolean takesPart(String cell, Entrant entrant) {
    return !over() && !failures.containsKey(name(cell, entrant));
  }

  private static String name(String cell, Entrant entrant) {
    return cell + " " + entrant.label();
  }

  private void measure(
      String cell, int round, Entrant entrant, String database, Measurement measurement) {
    long start = System.nanoTime();
    attempt(cell, round, entrant, database, measurement)
        .ifPresent(numbers -> add(cell, round, entrant, numbers, start));
  }

  private Optional<Numbers> attempt(
      String cell, int round, Entrant entrant, String database, Measurement measurement) {
    return attempt(
        name(cell, entrant), round, () -> sound(entrant, measurement.measure(entrant, database)));
  }

  private void add(String cell, int round, Entrant entrant, Numbers numbers, long start) {
    results.add(cell, entrant.label(), numbers);
    entrants.put(entrant.label(), entrant);
    progress(
        "%s round %d: %s: %s (%d s)",
        cell,
        round + 1,
        entrant.label(),
        Tables.headline(numbers),
        (System.nanoTime() - start) / 1_000_000_000);
  }

  private interface Attempt<T> {
    T run() throws IOException, SQLException;
  }

  /** Returns nothing if it fails; what fails once is left out from then on, the rest goes on. */
  private <T> Optional<T> attempt(String name, int round, Attempt<T> attempt) {
    try {
      return Optional.of(attempt.run());
    } catch (IOException | SQLException | RuntimeException e) {
      if (!cutShort) {
        failures.put(name, String.valueOf(e.getMessage()));
        progress("%s round %d FAILED: %s", name, round + 1, String.valueOf(e.getMessage()));
      }
      return Optional.empty();
    }
  }

  static List<Entrant> order(int round, List<Entrant> entrants) {
    List<Entrant> order = new ArrayList<>(entrants);
    Collections.rotate(order, -(round / 2));
    if (round % 2 == 1) {
      Collections.reverse(order);
    }
    return order;
  }

  private void onADatabase(Consumer<String> use) throws SQLException {
    String database = server.createDatabase();
    try {
      use.accept(database);
    } finally {
      drop(database);
    }
  }

  private void drop(String database) {
    if (cutShort) {
      return;
    }
    try {
      server.dropDatabase(database);
    } catch (SQLException e) { // costs space, and no figure
      progress("%s was left behind: %s", database, e);
    }
  }

  /** A figure must not be drawn of a contestant that lost messages, or ran them too early. */
  static Numbers sound(Entrant entrant, Numbers numbers) throws IOException {
    Map<String, Double> values = numbers.values();
    if (!Roster.mayBeStopped(entrant)
        && (values.getOrDefault("complete", 1.0) < 1
            || values.getOrDefault("missing", 0.0) > 0
            || values.getOrDefault("rows_left", 0.0) > 0
            || values.getOrDefault("early", 0.0) > 0)) {
      throw new IOException("not all messages came, or not in time: " + numbers);
    }
    return numbers;
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
