package dev.outbox4j.benchmarks.spi;

import com.zaxxer.hikari.HikariDataSource;
import java.sql.Connection;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.locks.LockSupport;

/**
 * Writers that publish at an even pace, open loop: each transaction has its instant, whatever
 * becomes of those before it.
 */
final class PacedWriters implements AutoCloseable {
  private final HikariDataSource pool;
  private final ExecutorService threads;
  private final int writers;
  private final List<Future<?>> running = new ArrayList<>();

  PacedWriters(Bench bench, int writers) {
    this.pool = bench.pool(writers);
    this.threads = Executors.newFixedThreadPool(writers);
    this.writers = writers;
  }

  /**
   * What is published.
   *
   * @param first the sequence number of the first message
   * @param count how many messages
   * @param bytes the size of each
   * @param rate messages a second
   * @param batch messages in a transaction
   */
  record Load(long first, int count, int bytes, int rate, int batch) {
    /** When a message is to be published, in nanoseconds from the start. */
    long instant(int message) {
      int firstOfTransaction = message - message % batch;
      return (long) ((double) firstOfTransaction / rate * 1e9);
    }
  }

  /** Is told of each message just before its commit is called. */
  interface Sent {
    void at(int message, long nanos);

    /** Is told of each message when its commit has returned. By default does nothing. */
    default void committed(int message, long nanos) {}
  }

  /** Returns at once. */
  void start(Publisher publisher, Load load, long start, Sent sent) {
    for (int writer = 0; writer < writers; writer++) {
      int offset = writer * load.batch();
      running.add(threads.submit(() -> write(publisher, load, start, sent, offset)));
    }
  }

  private Void write(Publisher publisher, Load load, long start, Sent sent, int offset)
      throws Exception {
    try (Connection connection = pool.getConnection()) {
      connection.setAutoCommit(false);
      for (int from = offset; from < load.count(); from += writers * load.batch()) {
        int until = Math.min(from + load.batch(), load.count());
        pace(start + load.instant(from));
        List<byte[]> payloads = new ArrayList<>(until - from);
        for (int message = from; message < until; message++) {
          payloads.add(Payloads.of(load.first() + message, load.bytes()));
        }
        publisher.publish(connection, payloads, Duration.ZERO);
        long now = System.nanoTime();
        for (int message = from; message < until; message++) {
          sent.at(message, now);
        }
        connection.commit();
        long committed = System.nanoTime();
        for (int message = from; message < until; message++) {
          sent.committed(message, committed);
        }
      }
    }
    return null;
  }

  /** Waits until all is published. */
  void await() throws InterruptedException, ExecutionException {
    for (Future<?> writer : running) {
      writer.get();
    }
  }

  /** Waits for an instant. */
  static void pace(long instant) {
    long left = instant - System.nanoTime();
    while (left > 0) {
      LockSupport.parkNanos(left);
      left = instant - System.nanoTime();
    }
  }

  @Override
  public void close() {
    threads.shutdownNow();
    pool.close();
  }
}
