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
import org.jspecify.annotations.Nullable;

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
      boolean business)
      throws Exception {
    if (business) {
      bench.execute(
          "create table if not exists business"
              + " (id bigint generated always as identity primary key, customer text, amount int)");
    }
    Publisher publisher = contestant.publisher(bench);
    AtomicLong messages = new AtomicLong();
    Latencies latencies = new Latencies(4_000_000);
    ExecutorService threads = Executors.newFixedThreadPool(writers);
    try (HikariDataSource pool = bench.pool(writers)) {
      transactions(
          pool, publisher, writers, batch, bytes, warmUp, business, threads, null, messages);
      long before = messages.getAndSet(0);
      ProcessMeter meter = new ProcessMeter();
      transactions(
          pool, publisher, writers, batch, bytes, seconds, business, threads, latencies, messages);
      Numbers numbers = meter.read(messages.get());
      return latencies
          .summary(numbers, "transaction")
          .with("transactions_per_second", numbers.values().getOrDefault("rate", 0.0) / batch)
          .with("messages_with_warm_up", before + messages.get());
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

  private static void transactions(
      HikariDataSource pool,
      Publisher publisher,
      int writers,
      int batch,
      int bytes,
      double seconds,
      boolean business,
      ExecutorService threads,
      @Nullable Latencies latencies,
      AtomicLong messages)
      throws Exception {
    long end = System.nanoTime() + (long) (seconds * 1e9);
    List<Future<?>> running = new ArrayList<>();
    for (int writer = 0; writer < writers; writer++) {
      long base = (long) writer << 32;
      running.add(
          threads.submit(
              () -> {
                long sequence = base;
                try (Connection connection = pool.getConnection()) {
                  connection.setAutoCommit(false);
                  while (System.nanoTime() < end) {
                    List<byte[]> payloads = new ArrayList<>(batch);
                    for (int i = 0; i < batch; i++) {
                      payloads.add(Payloads.of(sequence++, bytes));
                    }
                    long start = System.nanoTime();
                    if (business) {
                      order(connection);
                    }
                    publisher.publish(connection, payloads, Duration.ZERO);
                    connection.commit();
                    if (latencies != null) {
                      latencies.record(System.nanoTime() - start);
                    }
                    messages.addAndGet(batch);
                  }
                }
                return null;
              }));
    }
    for (Future<?> writer : running) {
      writer.get();
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
