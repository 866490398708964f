package dev.outbox4j.examples.quickstart;

import java.io.PrintStream;
import java.sql.Connection;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.time.Duration;
import java.util.concurrent.TimeUnit;
import javax.sql.DataSource;

/** Prints a line each second until all is placed and the outbox is empty, or nothing moves. */
final class Progress {
  private static final Duration STUCK_AFTER = Duration.ofSeconds(60);

  private final DataSource dataSource;
  private final LoadDriver driver;
  private final Ledger ledger;
  private final Counters counters;
  private final PrintStream out;

  Progress(
      DataSource dataSource, LoadDriver driver, Ledger ledger, Counters counters, PrintStream out) {
    this.dataSource = dataSource;
    this.driver = driver;
    this.ledger = ledger;
    this.counters = counters;
    this.out = out;
  }

  /** {@return how long it took} */
  Duration watch() throws SQLException, InterruptedException {
    out.printf(
        "%8s %8s %10s %12s %8s %8s %14s %8s %10s%n",
        "",
        "placed",
        "committed",
        "rolled back",
        "shipped",
        "retried",
        "dead-lettered",
        "backlog",
        "shipped/s");
    long begun = System.nanoTime();
    long moved = begun;
    long moves = -1;
    long shippedBefore = 0;
    long before = begun;
    while (true) {
      boolean placed = driver.done(); // looked at first: what it placed is then in the backlog
      long backlog = backlog();
      boolean ended = placed && backlog == 0;
      long now = System.nanoTime();
      long shipped = counters.acked.sum();
      double seconds = (now - before) / 1e9;
      if (ended || seconds >= 1) {
        print(now - begun, backlog, seconds < 0.1 ? 0 : (shipped - shippedBefore) / seconds);
        shippedBefore = shipped;
        before = now;
      }
      long sum = ledger.answered() + shipped + counters.retried.sum() + counters.deadLettered.sum();
      if (sum != moves) {
        moves = sum;
        moved = now;
      }
      if (!ended && now - moved > STUCK_AFTER.toNanos()) {
        out.printf("Nothing has moved for %d s; giving up waiting.%n", STUCK_AFTER.toSeconds());
      }
      if (ended || now - moved > STUCK_AFTER.toNanos()) {
        return Duration.ofNanos(now - begun);
      }
      TimeUnit.MILLISECONDS.sleep(100);
    }
  }

  private void print(long nanos, long backlog, double rate) {
    out.printf(
        "%6.1f s %8d %10d %12d %8d %8d %14d %8d %10.0f%n",
        nanos / 1e9,
        ledger.answered(),
        ledger.committed(),
        ledger.rolledBack(),
        counters.acked.sum(),
        counters.retried.sum(),
        counters.deadLettered.sum(),
        backlog,
        rate);
  }

  private long backlog() throws SQLException {
    try (Connection connection = dataSource.getConnection();
        Statement statement = connection.createStatement();
        ResultSet row =
            statement.executeQuery("select count(*) from outbox where queue = 'orders'")) {
      row.next();
      return row.getLong(1);
    }
  }
}
