package dev.outbox4j.benchmarks.spi;

import java.sql.Connection;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.concurrent.atomic.AtomicLong;
import org.jspecify.annotations.Nullable;
import org.postgresql.PGConnection;
import org.postgresql.PGNotification;

/** Counts the notifications of a channel, by a LISTEN of its own. */
public final class Notifications implements AutoCloseable {
  private static final int WAIT_MILLIS = 100;

  private final Connection connection;
  private final Thread thread;
  private final AtomicLong all = new AtomicLong();
  private final AtomicLong byName = new AtomicLong();
  private volatile boolean running = true;

  /**
   * Counts from now on.
   *
   * @param connection used for nothing else, and closed with this
   * @param channel where they are sent
   * @throws SQLException if the server refuses
   */
  public Notifications(Connection connection, String channel) throws SQLException {
    this.connection = connection;
    try (Statement statement = connection.createStatement()) {
      statement.execute("listen " + channel);
    }
    thread = new Thread(this::count, "notification-counter");
    thread.setDaemon(true);
    thread.start();
  }

  private void count() {
    try {
      PGConnection source = connection.unwrap(PGConnection.class);
      while (running) {
        PGNotification @Nullable [] some = source.getNotifications(WAIT_MILLIS);
        for (PGNotification one : some == null ? new PGNotification[0] : some) {
          all.incrementAndGet();
          if (isByName(one.getParameter())) {
            byName.incrementAndGet();
          }
        }
      }
    } catch (SQLException e) {
      running = false;
    }
  }

  /** Whether it is for one subscriber, by its name, and not for all of a queue. */
  static boolean isByName(String payload) {
    return !payload.isEmpty() && payload.charAt(0) == 1;
  }

  /**
   * Returns how many have come.
   *
   * @return of any kind
   * @throws SQLException if the connection is lost
   */
  public long all() throws SQLException {
    if (!running) {
      throw new SQLException("the connection that counts notifications is lost");
    }
    return all.get();
  }

  long byName() {
    return byName.get();
  }

  @Override
  public void close() throws SQLException {
    running = false;
    try (connection) {
      thread.join();
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }
}
