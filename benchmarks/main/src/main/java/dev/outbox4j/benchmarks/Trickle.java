package dev.outbox4j.benchmarks;

import dev.outbox4j.benchmarks.spi.Payloads;
import dev.outbox4j.benchmarks.spi.Publisher;
import java.sql.Connection;
import java.sql.SQLException;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import org.jspecify.annotations.Nullable;

/** Publishes single messages, a hundred a second, so that the subscriber has no reason to sleep. */
final class Trickle implements AutoCloseable {
  private static final long GAP = TimeUnit.MILLISECONDS.toNanos(10);
  private static final int BYTES = 256;

  private final Connection connection;
  private final Publisher publisher;
  private final Thread thread;
  private volatile boolean running = true;
  private volatile @Nullable Exception failure;

  Trickle(Connection connection, Publisher publisher) throws SQLException {
    this.connection = connection;
    this.publisher = publisher;
    connection.setAutoCommit(false);
    thread = new Thread(this::publish, "trickle");
    thread.setDaemon(true);
  }

  void start() {
    thread.start();
  }

  private void publish() {
    try {
      for (long next = System.nanoTime(); running; next += GAP) {
        publisher.publish(connection, List.of(Payloads.of(0, BYTES)), Duration.ZERO);
        connection.commit();
        LockSupport.parkNanos(Math.max(0, next + GAP - System.nanoTime()));
      }
    } catch (Exception e) {
      failure = e;
    }
  }

  @Override
  public void close() throws SQLException {
    running = false;
    try (connection) {
      thread.join();
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
    if (failure != null) { // without it the subscriber slept, and something else was measured
      throw new SQLException("the trickle of messages broke off", failure);
    }
  }
}
