package dev.outbox4j.examples.chaos;

import java.sql.Connection;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;
import org.postgresql.ds.PGSimpleDataSource;

/**
 * Asks the server through the pooler every 200 ms, and notes when there was no answer for longer
 * than a lease has left at its renewal. A pooler opens its connections again one after the other,
 * so for those behind it a brief fault may not be brief.
 */
final class PoolerPulse implements AutoCloseable {
  static final String FAULT = "pooler-silent";

  private static final long BEAT = TimeUnit.MILLISECONDS.toNanos(200);

  private final PGSimpleDataSource pooler;
  private final Duration limit;
  private final Supplier<List<String>> behindIt;
  private final Ledger ledger;
  private final Thread thread = new Thread(this::run, "chaos-pooler-pulse");
  private volatile boolean closed;
  private @Nullable String answered;
  private long answeredAt;
  private int silences;
  private Duration longest = Duration.ZERO;

  /**
   * @param port the pooler's
   * @param limit what a silence must exceed to be noted
   * @param behindIt the names of the subscribers behind it
   */
  PoolerPulse(int port, Duration limit, Supplier<List<String>> behindIt, Ledger ledger) {
    this.pooler = Database.at(port);
    this.limit = limit;
    this.behindIt = behindIt;
    this.ledger = ledger;
    pooler.setPrepareThreshold(0); // it keeps no prepared statements
    thread.setDaemon(true);
  }

  void start() {
    thread.start();
  }

  private void run() {
    while (!closed) {
      try (Connection connection = pooler.getConnection();
          Statement statement = connection.createStatement()) {
        while (!closed) {
          beat(statement);
          LockSupport.parkNanos(BEAT);
        }
      } catch (SQLException stillSilent) {
        LockSupport.parkNanos(BEAT);
      }
    }
  }

  private void beat(Statement statement) throws SQLException {
    String now = now(statement);
    long at = System.nanoTime();
    String before = answered;
    if (before != null) {
      Duration silent = Duration.ofNanos(at - answeredAt);
      if (silent.compareTo(limit) > 0) {
        for (String name : behindIt.get()) {
          ledger.hit(FAULT, name, before, now);
        }
        silences++;
      }
      longest = longest.compareTo(silent) < 0 ? silent : longest;
    }
    answered = now;
    answeredAt = at;
  }

  private static String now(Statement statement) throws SQLException {
    try (ResultSet rows = statement.executeQuery("select true_now()::text")) {
      rows.next();
      return rows.getString(1);
    }
  }

  /** How many silences there were. To be asked when it is closed. */
  int silences() {
    return silences;
  }

  /** The longest time without an answer. To be asked when it is closed. */
  Duration longest() {
    return longest;
  }

  @Override
  public void close() {
    closed = true;
    LockSupport.unpark(thread);
    try {
      thread.join(TimeUnit.SECONDS.toMillis(15)); // what a connect and a statement take at most
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }
}
