package dev.outbox4j.examples.chaos;

import java.sql.Connection;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.time.Duration;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import javax.sql.DataSource;

/**
 * Commits a small write every 200 ms and notes when the machine or its disk stood still: for a
 * lease that ran out meanwhile, the framework is not to blame.
 */
final class Pulse implements AutoCloseable {
  static final String FAULT = "machine-stalled";

  private static final long BEAT = TimeUnit.MILLISECONDS.toNanos(200);
  private static final long STALL = TimeUnit.SECONDS.toNanos(1);

  private final DataSource unpooled;
  private final Ledger ledger;
  private final Thread thread = new Thread(this::run, "chaos-pulse");
  private volatile boolean closed;
  private int stalls;
  private Duration longest = Duration.ZERO;

  Pulse(DataSource unpooled, Ledger ledger) {
    this.unpooled = unpooled;
    this.ledger = ledger;
    thread.setDaemon(true);
  }

  void start() {
    thread.start();
  }

  private void run() {
    while (!closed) {
      try (Connection connection = unpooled.getConnection();
          Statement statement = connection.createStatement()) {
        while (!closed) {
          beat(statement);
        }
      } catch (SQLException serverIsDown) {
        LockSupport.parkNanos(BEAT); // a fault of its own
      }
    }
  }

  private void beat(Statement statement) throws SQLException {
    String from = now(statement);
    long begun = System.nanoTime();
    LockSupport.parkNanos(BEAT);
    statement.executeUpdate("update pulse set at = clock_timestamp()");
    long stood = System.nanoTime() - begun - BEAT;
    if (stood > STALL) {
      ledger.hit(FAULT, null, from, now(statement));
      count(Duration.ofNanos(stood));
    }
  }

  private static String now(Statement statement) throws SQLException {
    try (ResultSet rows = statement.executeQuery("select true_now()::text")) {
      rows.next();
      return rows.getString(1);
    }
  }

  private synchronized void count(Duration stood) {
    longest = longest.compareTo(stood) < 0 ? stood : longest;
    stalls++;
  }

  synchronized int stalls() {
    return stalls;
  }

  synchronized Duration longest() {
    return longest;
  }

  @Override
  public void close() {
    closed = true;
    LockSupport.unpark(thread);
    try {
      thread.join(TimeUnit.SECONDS.toMillis(5));
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }
}
