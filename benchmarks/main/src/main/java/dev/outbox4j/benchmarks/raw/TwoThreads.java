package dev.outbox4j.benchmarks.raw;

import dev.outbox4j.benchmarks.spi.Bench;
import dev.outbox4j.benchmarks.spi.Draining;
import dev.outbox4j.benchmarks.spi.Sink;
import java.sql.Connection;
import java.sql.SQLException;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ArrayBlockingQueue;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;

/**
 * One thread claims, one handles and acks, a short queue between them; a connection each. The
 * option {@code pairs} says how many such pairs there are, all on one queue.
 */
abstract class TwoThreads implements Draining {
  /** The queue that all messages are in. */
  static final String QUEUE = "bench";

  private final List<Thread> threads = new ArrayList<>();
  private volatile boolean running;

  /** Makes a connection ready. By default does nothing. */
  void open(Connection connection) throws SQLException {
    // nothing to set
  }

  /** Claims rows that are due; at most so many as it is made for. */
  abstract Taken claim(Connection connection) throws SQLException;

  /** Handles rows and writes their ends. */
  abstract void handle(Connection connection, Taken taken, Sink sink) throws SQLException;

  @Override
  public boolean reportsAcks() {
    return true;
  }

  @Override
  public void start(Bench bench, Sink sink) {
    running = true;
    BlockingQueue<Taken> queue = new ArrayBlockingQueue<>(4);
    for (int pair = 0; pair < bench.option("pairs", 1); pair++) {
      startPair(bench, sink, queue);
    }
  }

  private void startPair(Bench bench, Sink sink, BlockingQueue<Taken> queue) {
    threads.add(
        run(
            bench,
            "claimer",
            connection -> {
              Taken taken = claim(connection);
              if (taken.size() == 0) {
                LockSupport.parkNanos(1_000_000);
                return;
              }
              while (running && !queue.offer(taken, 100, TimeUnit.MILLISECONDS)) {
                // the handler has not caught up
              }
            }));
    threads.add(
        run(
            bench,
            "handler",
            connection -> {
              Taken taken = queue.poll(100, TimeUnit.MILLISECONDS);
              if (taken != null) {
                handle(connection, taken, sink);
              }
            }));
  }

  private Thread run(Bench bench, String name, Step step) {
    Thread thread =
        new Thread(
            () -> {
              try (Connection connection = bench.dataSource().getConnection()) {
                open(connection);
                while (running) {
                  step.run(connection);
                }
              } catch (SQLException e) {
                throw new IllegalStateException(name + " of " + name(), e);
              } catch (InterruptedException e) {
                Thread.currentThread().interrupt();
              }
            },
            name);
    thread.start();
    return thread;
  }

  @Override
  public void stop() throws InterruptedException {
    running = false;
    for (Thread thread : threads) {
      thread.join();
    }
    threads.clear();
  }

  private interface Step {
    void run(Connection connection) throws SQLException, InterruptedException;
  }
}
