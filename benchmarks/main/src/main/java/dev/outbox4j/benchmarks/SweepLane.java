package dev.outbox4j.benchmarks;

import dev.outbox4j.benchmarks.Results.Place;
import dev.outbox4j.benchmarks.ours.Outbox4j;
import dev.outbox4j.benchmarks.spi.Bench;
import dev.outbox4j.benchmarks.spi.Numbers;
import dev.outbox4j.benchmarks.spi.Payloads;
import dev.outbox4j.benchmarks.spi.Publisher;
import java.io.IOException;
import java.sql.Connection;
import java.sql.SQLException;
import java.sql.Statement;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;

/**
 * A backlog above millions of dead rows that nobody may remove, as another transaction still sees
 * them, with a network timeout by which the server ends a sweep after a third of what it costs to
 * pass those rows once: the store's statements set their own time limits, whatever the role's. A
 * subscriber that was running before works it off, then one that has just started. A row that was
 * published before the backlog and committed after it lies below what either has handled. Whoever
 * has no dead rows has no such timeout either.
 */
final class SweepLane implements Lane {
  private static final String CELL = "sweep, %d x 256 B above dead rows";
  private static final int ROUNDS = 3;
  private static final int ROWS = 1_000_000;
  private static final int WARM_UP = 500_000;
  private static final double WARM_UP_SECONDS = 120;
  private static final long POLL = TimeUnit.MILLISECONDS.toNanos(20);

  private static final Entrant FREE = Roster.OURS.called("outbox4j, no dead rows");

  /** What it handles cannot be removed either, but nothing lies below. */
  private static final Entrant BESIDE =
      Roster.OURS.called("outbox4j, beside an open transaction, no dead rows below");

  private static final Entrant ABOVE = Roster.OURS.called("outbox4j, above dead rows");

  @Override
  public String name() {
    return "sweep";
  }

  @Override
  public void run(Run run) throws IOException, SQLException {
    int dead = Settings.numbers("dead", "3m").get(0);
    Cost cost = Cost.ofSweep(run, dead);
    run.progress("a sweep over %d dead rows takes %d ms", dead, cost.millis());
    for (int round = 0; round < Math.min(ROUNDS, Settings.rounds()) && !run.over(); round++) {
      for (int rows : Settings.numbers("rows", Integer.toString(ROWS))) {
        run.turn(
            CELL.formatted(rows),
            round,
            Roster.asked(List.of(FREE, BESIDE, ABOVE)),
            (entrant, database) -> {
              Entrant limited =
                  entrant.with("networkTimeoutMillis", Long.toString(2 * cost.millis() / 3));
              try (Session session =
                  new Session(run, entrant.equals(ABOVE) ? limited : entrant, database)) {
                return session
                    .measure(!entrant.equals(FREE), entrant.equals(ABOVE) ? dead : 0, rows)
                    .with("full_sweep_ms", cost.millis())
                    .with("sweep_limit_ms", cost.millis() / 3);
              }
            });
      }
    }
  }

  /** What it costs to pass the dead rows once. */
  private record Cost(long millis) {

    static Cost ofSweep(Run run, int dead) throws IOException, SQLException {
      String database = run.server().createDatabase();
      try (ContestantJvm jvm = run.start(Roster.OURS, database);
          Connection holder = run.server().connect(database);
          Connection connection = run.server().connect(database)) {
        jvm.perform("prepare");
        pin(holder);
        makeDead(connection, dead);
        try (Statement statement = connection.createStatement()) {
          for (String method : List.of("seqscan", "bitmapscan", "sort")) {
            statement.execute("set enable_" + method + " = off");
          }
          statement.execute("set jit = off");
          statement.execute(Outbox4j.FIRST_DUE); // reads what is not in memory
          long start = System.nanoTime();
          statement.execute(Outbox4j.FIRST_DUE);
          return new Cost(TimeUnit.NANOSECONDS.toMillis(System.nanoTime() - start));
        }
      } finally {
        run.server().dropDatabase(database);
      }
    }
  }

  /** From now on no row that is deleted can be removed. */
  private static void pin(Connection holder) throws SQLException {
    try (Statement statement = holder.createStatement()) {
      statement.execute("begin isolation level repeatable read");
      statement.execute("select count(*) from pg_class");
    }
  }

  private static void makeDead(Connection connection, int rows) throws SQLException {
    try (Statement statement = connection.createStatement()) {
      connection.setAutoCommit(false);
      statement.execute(Outbox4j.INSERT_OLD.formatted(rows));
      statement.execute(Outbox4j.DELETE_OLD);
      connection.commit();
      connection.setAutoCommit(true);
    }
  }

  /** Both subscribers, one after the other, on one database. */
  private static final class Session implements AutoCloseable {
    private final Run run;
    private final String database;
    private final double limit = Settings.number("seconds", 125);
    private final Publisher publisher;
    private final ContestantJvm loader;
    private final ContestantJvm subscriber;

    Session(Run run, Entrant entrant, String database) throws IOException, SQLException {
      this.run = run;
      this.database = database;
      Server server = run.server();
      publisher =
          new Outbox4j()
              .publisher(
                  new Bench(server.url(database), server.user(), server.password(), Map.of()));
      loader = run.start(Roster.OURS, database);
      subscriber = run.start(entrant, database);
    }

    Numbers measure(boolean held, int dead, int rows) throws IOException, SQLException {
      loader.perform("prepare");
      subscriber.perform("consume");
      try (Connection holder = run.server().connect(database);
          Connection writer = run.server().connect(database);
          Trickle trickle = new Trickle(run.server().connect(database), publisher)) {
        trickle.start();
        loader.perform("load 0 " + WARM_UP + " 256");
        if (await("handled", WARM_UP, WARM_UP_SECONDS).isEmpty()) {
          throw new IOException("the warm-up is not done in time");
        }
        if (held) {
          pin(holder);
        }
        if (dead > 0) {
          makeDead(writer, dead);
        }
        Numbers numbers = new Numbers();
        try (Late late = new Late(run.server().connect(database), publisher)) {
          double before = handled("handled");
          loader.perform("load 0 " + rows + " 256");
          numbers.with("rate", rate(before, rows));
          late.commit();
          numbers.with("late_row_s", await("marked", 1, limit).orElse(limit));
        }
        subscriber.perform("rest");
        try (Late late = new Late(run.server().connect(database), publisher)) {
          loader.perform("load 0 " + rows + " 256");
          subscriber.perform("consume");
          numbers.with("restarted_rate", rate(0, rows));
          late.commit();
          numbers.with("restarted_late_row_s", await("marked", 1, limit).orElse(limit));
        }
        subscriber.perform("rest");
        return numbers;
      }
    }

    /** Messages a second from now on until the backlog is handled, or the time is over. */
    private double rate(double before, int rows) throws IOException {
      Optional<Double> seconds = await("handled", before + rows, limit);
      return seconds.isPresent() ? rows / seconds.get() : (handled("handled") - before) / limit;
    }

    /** Seconds until a count is reached; nothing if it is not in time. */
    private Optional<Double> await(String metric, double count, double longest) throws IOException {
      long start = System.nanoTime();
      double seconds = 0;
      while (seconds < longest) {
        if (handled(metric) >= count) {
          return Optional.of(seconds);
        }
        LockSupport.parkNanos(POLL);
        seconds = (System.nanoTime() - start) / 1e9;
      }
      return Optional.empty();
    }

    private double handled(String metric) throws IOException {
      return Parts.value(subscriber.perform("handled"), metric);
    }

    @Override
    public void close() {
      subscriber.close();
      loader.close();
    }
  }

  /** A message that is published long before its transaction commits. */
  private static final class Late implements AutoCloseable {
    private final Connection transaction;

    // whatever the publisher throws ends the measurement
    Late(Connection transaction, Publisher publisher) throws IOException, SQLException {
      this.transaction = transaction;
      transaction.setAutoCommit(false);
      try {
        publisher.publish(transaction, List.of(Payloads.of(-1, 256)), Duration.ZERO);
      } catch (Exception e) {
        transaction.close();
        throw new IOException(e);
      }
    }

    void commit() throws SQLException {
      transaction.commit();
    }

    @Override
    public void close() throws SQLException {
      transaction.close();
    }
  }

  @Override
  public void figures(Results results, Map<String, Figure> figures) {
    String cell = CELL.formatted(ROWS);
    results
        .ratio(cell, ABOVE.label(), cell, FREE.label(), "rate")
        .ifPresent(value -> figures.put("sweep_running_vs_free", value));
    results
        .ratio(cell, ABOVE.label(), cell, BESIDE.label(), "rate")
        .ifPresent(value -> figures.put("sweep_running_vs_beside", value));
    results
        .ratio(
            new Place(cell, ABOVE.label(), "restarted_rate"), new Place(cell, FREE.label(), "rate"))
        .ifPresent(value -> figures.put("sweep_restarted_vs_free", value));
    Figure.greatest(
            results.paired(
                new Place(cell, ABOVE.label(), "late_row_s"),
                new Place(cell, ABOVE.label(), "restarted_late_row_s"),
                Math::max))
        .ifPresent(value -> figures.put("sweep_late_row_s", value));
  }
}
