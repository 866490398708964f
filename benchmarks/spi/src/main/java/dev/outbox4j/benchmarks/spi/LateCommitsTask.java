package dev.outbox4j.benchmarks.spi;

import com.zaxxer.hikari.HikariDataSource;
import java.sql.Connection;
import java.sql.SQLException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.ScheduledFuture;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.AtomicLongArray;
import java.util.concurrent.locks.LockSupport;

/**
 * A backlog that never ends, while some messages are committed long after they were published: a
 * subscriber that reads on from where it is has passed them by then.
 */
final class LateCommitsTask {
  private static final long FIRST = 1L << 40;
  private static final int BATCH = 500;
  private static final int WARM_UP_SECONDS = 5;
  private static final int LONGEST_SECONDS = 120;
  private static final long HANDLER_NANOS = 1_000_000;

  private final Publishing publishing;
  private final Consuming consuming;
  private final Bench bench;
  private final int bytes;
  private final AtomicLong published = new AtomicLong();
  private final AtomicLong handled = new AtomicLong();
  private final AtomicLong leastBacklog = new AtomicLong(Long.MAX_VALUE);
  private volatile boolean running = true;

  LateCommitsTask(Publishing publishing, Consuming consuming, Bench bench, int bytes) {
    this.publishing = publishing;
    this.consuming = consuming;
    this.bench = bench;
    this.bytes = bytes;
  }

  /**
   * Runs.
   *
   * @param depth messages that are always there to be handled
   * @param seconds for so long late messages are published
   * @param perSecond how many of them
   * @param longestHoldSeconds for how long their transactions stay open at the most
   */
  Numbers run(int depth, int seconds, int perSecond, int longestHoldSeconds) throws Exception {
    int late = seconds * perSecond;
    AtomicLongArray committed = new AtomicLongArray(late);
    Latencies ages = new Latencies(late);
    CountingSink sink =
        new CountingSink(
            FIRST,
            late,
            false,
            false,
            sequence -> ages.record(System.nanoTime() - committed.get((int) (sequence - FIRST))));
    Publisher publisher = publishing.publisher(bench);
    ScheduledExecutorService threads = Executors.newScheduledThreadPool(8);
    ProcessMeter meter = new ProcessMeter();
    consuming.start(bench, payload -> handle(payload, sink));
    try (HikariDataSource pool = bench.pool(perSecond * longestHoldSeconds + BATCH / 100)) {
      Future<?> feeder = threads.submit(() -> feed(pool, publisher, depth));
      PacedWriters.pace(System.nanoTime() + TimeUnit.SECONDS.toNanos(WARM_UP_SECONDS));
      leastBacklog.set(Long.MAX_VALUE);
      List<ScheduledFuture<?>> commits = new ArrayList<>();
      long start = System.nanoTime();
      for (int i = 0; i < late; i++) {
        PacedWriters.pace(start + TimeUnit.SECONDS.toNanos(i) / perSecond);
        int message = i;
        Connection transaction = pool.getConnection();
        transaction.setAutoCommit(false);
        publisher.publish(transaction, List.of(Payloads.of(FIRST + i, bytes)), Duration.ZERO);
        long hold =
            ThreadLocalRandom.current().nextLong(TimeUnit.SECONDS.toNanos(longestHoldSeconds));
        commits.add(
            threads.schedule(
                () -> commit(transaction, committed, message), hold, TimeUnit.NANOSECONDS));
      }
      for (ScheduledFuture<?> commit : commits) {
        commit.get();
      }
      sink.await(LONGEST_SECONDS);
      running = false;
      feeder.get();
      Numbers numbers = meter.read(handled.get());
      consuming.stop();
      return ages.summary(numbers, "age_after_commit")
          .with("late_messages", late)
          .with("missing", late - sink.finished())
          .with("repeated", sink.repeated())
          .with("backlog_least", leastBacklog.get());
    } finally {
      running = false;
      threads.shutdownNow();
    }
  }

  private Verdict handle(byte[] payload, Sink sink) {
    if (Payloads.sequence(payload) >= FIRST) {
      return sink.handle(payload);
    }
    LockSupport.parkNanos(HANDLER_NANOS); // so that publishing is faster
    long left = published.get() - handled.incrementAndGet();
    leastBacklog.accumulateAndGet(left, Math::min);
    return Verdict.ACK;
  }

  private Void commit(Connection transaction, AtomicLongArray committed, int message)
      throws SQLException {
    try (transaction) {
      committed.set(message, System.nanoTime());
      transaction.commit();
    }
    return null;
  }

  private Void feed(HikariDataSource pool, Publisher publisher, int depth) throws Exception {
    try (Connection connection = pool.getConnection()) {
      connection.setAutoCommit(false);
      while (running) {
        if (published.get() - handled.get() >= depth) {
          LockSupport.parkNanos(HANDLER_NANOS);
          continue;
        }
        List<byte[]> payloads = new ArrayList<>(BATCH);
        for (int i = 0; i < BATCH; i++) {
          payloads.add(Payloads.of(published.get() + i, bytes));
        }
        publisher.publish(connection, payloads, Duration.ZERO);
        connection.commit();
        published.addAndGet(BATCH);
      }
    }
    return null;
  }
}
