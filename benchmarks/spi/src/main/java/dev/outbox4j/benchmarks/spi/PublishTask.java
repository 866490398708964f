package dev.outbox4j.benchmarks.spi;

import com.zaxxer.hikari.HikariDataSource;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.LockSupport;

/** Writers that publish as fast as they can, each in transactions of its own. */
final class PublishTask {
  private PublishTask() {}

  static Numbers run(
      Publishing contestant,
      Bench bench,
      int writers,
      int batch,
      int bytes,
      double warmUp,
      double seconds,
      boolean business,
      Share share)
      throws Exception {
    if (business) {
      bench.execute(
          "select pg_advisory_lock(1)", // until the connection ends: another process does the same
          "create table if not exists business"
              + " (id bigint generated always as identity primary key, customer text, amount int)");
    }
    ProcessMeter meter = new ProcessMeter();
    long from = share.begin(System.currentTimeMillis() + (long) (warmUp * 1e3));
    long end = from + (long) (seconds * 1e3);
    Writer writer =
        new Writer(
            contestant.publisher(bench),
            batch,
            bytes,
            business,
            share,
            from,
            end,
            new AtomicLong(),
            new Latencies(4_000_000));
    ExecutorService threads = Executors.newFixedThreadPool(writers);
    try (HikariDataSource pool = bench.pool(writers)) {
      List<Future<?>> running = new ArrayList<>();
      for (long i = 0; i < writers; i++) {
        long base = i << 32;
        running.add(threads.submit(() -> writer.write(pool, base)));
      }
      // they do not stop when it begins to count: a subscriber might take that for the end
      while (System.currentTimeMillis() < from) {
        LockSupport.parkUntil(from);
      }
      long before = writer.messages().get();
      meter.restart();
      for (Future<?> one : running) {
        one.get();
      }
      long messages = writer.messages().get() - before;
      Numbers numbers = meter.read(messages);
      double rate = numbers.values().getOrDefault("rate", 0.0) / share.of();
      return writer
          .latencies()
          .summary(numbers.with("rate", rate), "transaction")
          .with("transactions_per_second", rate / batch)
          .with("messages_with_warm_up", writer.messages().get());
    } finally {
      threads.shutdownNow();
    }
  }

  /** Publishes so many messages, one batch in each transaction. */
  static Numbers fill(
      Publishing contestant, Bench bench, long first, long rows, int bytes, int batch)
      throws Exception {
    Publisher publisher = contestant.publisher(bench);
    ProcessMeter meter = new ProcessMeter();
    try (Connection connection = bench.dataSource().getConnection()) {
      connection.setAutoCommit(false);
      for (long from = first; from < first + rows; from += batch) {
        List<byte[]> payloads = new ArrayList<>(batch);
        for (long row = from; row < Math.min(from + batch, first + rows); row++) {
          payloads.add(Payloads.of(row, bytes));
        }
        publisher.publish(connection, payloads, Duration.ZERO);
        connection.commit();
      }
    }
    return meter.read(rows);
  }

  /** What each of the writers does. */
  private record Writer(
      Publisher publisher,
      int batch,
      int bytes,
      boolean business,
      Share share,
      long from,
      long end,
      AtomicLong messages,
      Latencies latencies) {

    Void write(HikariDataSource pool, long base) throws Exception {
      long sequence = base;
      try (Connection connection = pool.getConnection()) {
        connection.setAutoCommit(false);
        while (share.awaitTurn(end)) {
          boolean counts = System.currentTimeMillis() >= from;
          List<byte[]> payloads = new ArrayList<>(batch);
          for (int i = 0; i < batch; i++) {
            payloads.add(Payloads.of(sequence++, bytes));
          }
          long begun = System.nanoTime();
          if (business) {
            order(connection);
          }
          publisher.publish(connection, payloads, Duration.ZERO);
          connection.commit();
          if (counts) {
            latencies.record(System.nanoTime() - begun);
          }
          messages.addAndGet(batch);
        }
      }
      return null;
    }
  }

  private static void order(Connection connection) throws Exception {
    try (PreparedStatement statement =
        connection.prepareStatement("insert into business (customer, amount) values (?, ?)")) {
      statement.setString(1, "a customer");
      statement.setInt(2, 42);
      statement.executeUpdate();
    }
  }
}
