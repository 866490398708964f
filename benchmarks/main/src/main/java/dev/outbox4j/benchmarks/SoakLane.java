package dev.outbox4j.benchmarks;

import dev.outbox4j.benchmarks.spi.Numbers;
import java.io.IOException;
import java.sql.Connection;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;

/**
 * A steady rate for an hour, which stands for the day that {@code -Dseconds=86400} runs: what grows
 * with time, in the table, the heap or the latency, by tenths of it. Autovacuum is on as the schema
 * sets it.
 */
final class SoakLane implements Lane {
  private static final int HOUR = 3600;
  private static final int RATE = 500;
  private static final int PARTS = 10;
  private static final int LONGEST_WARM_UP = 60;

  private static final String SERVER =
      "select (select sum(pg_total_relation_size(relid)) from pg_stat_user_tables),"
          + " (select sum(autovacuum_count) from pg_stat_user_tables),"
          + " (select age(datfrozenxid) from pg_database where datname = current_database())";

  @Override
  public String name() {
    return "soak";
  }

  @Override
  public boolean inAll() {
    return false;
  }

  @Override
  public void run(Run run) throws SQLException {
    int seconds = Settings.number("seconds", HOUR);
    int rate = Settings.numbers("rates", Integer.toString(RATE)).get(0);
    run.turn(
        "soak of %d s, %d x 256 B a second".formatted(seconds, rate),
        0,
        Roster.asked(List.of(Roster.OURS)),
        (entrant, database) -> soak(run, entrant, database, rate, seconds));
  }

  private static Numbers soak(Run run, Entrant entrant, String database, int rate, int seconds)
      throws IOException, SQLException {
    try (ContestantJvm jvm = run.start(entrant, database);
        Connection connection = run.server().connect(database)) {
      jvm.perform("prepare");
      try (Watch watch = new Watch(run.server(), database)) {
        int warmUp = Math.min(LONGEST_WARM_UP, Math.max(1, seconds / PARTS));
        String task =
            "soak 256 %d %d %d %d".formatted(rate, warmUp, seconds, Settings.number("writers", 8));
        long start = System.nanoTime() + TimeUnit.SECONDS.toNanos(warmUp);
        jvm.send(task);
        Numbers ofServer = new Numbers();
        for (int part = 1; part <= PARTS; part++) {
          park(start + part * TimeUnit.SECONDS.toNanos(seconds) / PARTS);
          server(connection, part, ofServer);
        }
        Numbers numbers = jvm.receive(task);
        ofServer.values().forEach(numbers::with);
        return Completeness.left(jvm, drift(watch.read(numbers, Parts.value(numbers, "messages"))));
      }
    }
  }

  private static void park(long until) {
    for (long left = until - System.nanoTime(); left > 0; left = until - System.nanoTime()) {
      LockSupport.parkNanos(left);
    }
  }

  private static void server(Connection connection, int part, Numbers into) throws SQLException {
    try (Statement statement = connection.createStatement();
        ResultSet row = statement.executeQuery(SERVER)) {
      row.next();
      into.with("size_mib_" + part, row.getDouble(1) / (1 << 20))
          .with("autovacuums_" + part, row.getLong(2))
          .with("xid_age_" + part, row.getLong(3));
    }
  }

  /** What the last tenth is of the first. */
  static Numbers drift(Numbers numbers) {
    for (String metric : List.of("p50_ms", "p99_ms", "heap_least_mib", "size_mib")) {
      numbers.with(
          "last_vs_first_" + metric,
          Parts.value(numbers, metric + "_" + PARTS) / Parts.value(numbers, metric + "_1"));
    }
    return numbers;
  }
}
