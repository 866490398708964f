package dev.outbox4j.benchmarks.spi;

import com.zaxxer.hikari.HikariDataSource;
import java.sql.Connection;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.Semaphore;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.AtomicLongArray;
import java.util.stream.IntStream;

/** From the commit, or from the due instant, to the handler; all in one process, on one clock. */
final class LatencyTask {
  /** Connections are opened then, and writers catch up with what that has cost them. */
  private static final int UNRECORDED_SECONDS = 10;

  private final Publishing publishing;
  private final Consuming consuming;
  private final Bench bench;
  private final int bytes;

  LatencyTask(Publishing publishing, Consuming consuming, Bench bench, int bytes) {
    this.publishing = publishing;
    this.consuming = consuming;
    this.bench = bench;
    this.bytes = bytes;
  }

  /**
   * One message at a time, perhaps each after a burst of others. The first ones are not recorded,
   * as LISTEN may be on its way; neither are bursts, but what they cost counts.
   */
  Numbers idle(int unrecorded, int recorded, Rhythm rhythm) throws Exception {
    long first = 1L << 40;
    int messages = unrecorded + recorded;
    AtomicLongArray at = new AtomicLongArray(messages);
    Semaphore arrived = new Semaphore(0);
    Semaphore others = new Semaphore(0);
    Sink sink =
        payload -> {
          long sequence = Payloads.sequence(payload);
          if (sequence < first) {
            others.release();
          } else if (at.compareAndSet((int) (sequence - first), 0, System.nanoTime())) {
            arrived.release();
          }
          return Verdict.ACK;
        };
    Latencies fromCommit = new Latencies(recorded);
    Latencies fromCommitted = new Latencies(recorded);
    Publisher publisher = publishing.publisher(bench);
    ProcessMeter meter = new ProcessMeter();
    consuming.start(bench, sink);
    long missing = 0;
    try (HikariDataSource pool = bench.pool(1);
        Connection connection = pool.getConnection()) {
      connection.setAutoCommit(false);
      for (int i = 0; i < messages; i++) {
        if (rhythm.busy() > 0) {
          publisher.publish(connection, payloads(rhythm.busy()), Duration.ZERO);
          connection.commit();
          if (!others.tryAcquire(rhythm.busy(), 60, TimeUnit.SECONDS)) {
            throw new IllegalStateException("a message of a burst is missing");
          }
        }
        rhythm.pause();
        publisher.publish(connection, List.of(Payloads.of(first + i, bytes)), Duration.ZERO);
        rhythm.hold();
        long commit = System.nanoTime();
        connection.commit();
        long committed = System.nanoTime();
        if (!arrived.tryAcquire(20, TimeUnit.SECONDS)) {
          missing++;
        } else if (i >= unrecorded) {
          fromCommit.record(at.get(i) - commit);
          fromCommitted.record(at.get(i) - committed);
        }
      }
    }
    Numbers numbers = meter.read((long) messages * (1 + rhythm.busy()));
    consuming.stop();
    fromCommit.summary(numbers, "latency");
    return fromCommitted.summary(numbers, "after_commit").with("missing", missing);
  }

  private List<byte[]> payloads(int count) {
    return IntStream.range(0, count).mapToObj(i -> Payloads.of(i, bytes)).toList();
  }

  /** Writers at a steady rate, open loop: who falls behind shows it in the backlog. */
  Numbers steady(int rate, int batch, int seconds, int writers) throws Exception {
    int unrecorded = UNRECORDED_SECONDS * rate;
    int expected = rate * (seconds + UNRECORDED_SECONDS);
    long first = 1L << 40;
    PacedWriters.Load load = new PacedWriters.Load(first, expected, bytes, rate, batch);
    AtomicLongArray sent = new AtomicLongArray(expected);
    AtomicLong begin = new AtomicLong();
    LagSamples lags = new LagSamples(expected);
    Latencies fromCommit = new Latencies(expected);
    Latencies fromSchedule = new Latencies(expected);
    CountingSink sink =
        new CountingSink(
            first,
            expected,
            false,
            false,
            sequence -> {
              int index = (int) (sequence - first);
              lags.handled(index);
              if (index >= unrecorded) {
                long now = System.nanoTime();
                fromCommit.record(now - sent.get(index));
                fromSchedule.record(now - begin.get() - load.instant(index));
              }
            });
    Publisher publisher = publishing.publisher(bench);
    consuming.start(bench, sink);
    ProcessMeter meter = new ProcessMeter();
    BacklogSlope slope = new BacklogSlope();
    try (PacedWriters running = new PacedWriters(bench, writers)) {
      long start = System.nanoTime();
      begin.set(start);
      running.start(publisher, load, start, noting(sent, lags));
      long warm = start + UNRECORDED_SECONDS * 1_000_000_000L;
      long end = warm + seconds * 1_000_000_000L;
      PacedWriters.pace(warm);
      LagSampler sampler =
          consuming instanceof Lagging lagging ? LagSampler.start(lagging, lags) : null;
      for (long next = warm; next < end; next += 100_000_000L) {
        PacedWriters.pace(next);
        double due = Math.min(expected, (System.nanoTime() - start) / 1e9 * rate);
        slope.sample((System.nanoTime() - start) / 1e9, due - sink.finished());
      }
      if (sampler != null) {
        sampler.stop();
      }
      running.await();
      double took = (System.nanoTime() - start) / 1e9;
      boolean complete = sink.await(30);
      Numbers numbers = meter.read(sink.finished());
      consuming.stop();
      fromCommit.summary(numbers, "latency");
      if (sampler != null) {
        lags.summary(numbers);
      }
      return fromSchedule
          .summary(numbers, "scheduled")
          .with("backlog_slope_per_s", slope.perSecond())
          .with("backlog_max", slope.max())
          .with("published_per_s", expected / took)
          .with("complete", complete ? 1 : 0);
    }
  }

  private static PacedWriters.Sent noting(AtomicLongArray sent, LagSamples lags) {
    return new PacedWriters.Sent() {
      @Override
      public void at(int message, long nanos) {
        sent.set(message, nanos);
      }

      @Override
      public void committed(int message, long nanos) {
        lags.committed(message, nanos);
      }
    };
  }

  /** Messages due at random instants within a span that begins when all are published. */
  Numbers delayed(int messages, int spanSeconds) throws Exception {
    long first = 1L << 40;
    AtomicLongArray due = new AtomicLongArray(messages);
    Latencies lateness = new Latencies(messages);
    AtomicLongArray early = new AtomicLongArray(1);
    CountingSink sink =
        new CountingSink(
            first,
            messages,
            false,
            false,
            sequence -> {
              long late = System.nanoTime() - due.get((int) (sequence - first));
              if (late < 0) {
                early.incrementAndGet(0);
              }
              lateness.record(late);
            });
    Publisher publisher = publishing.publisher(bench);
    consuming.start(bench, sink);
    ProcessMeter meter = new ProcessMeter();
    try (HikariDataSource pool = bench.pool(1);
        Connection connection = pool.getConnection()) {
      connection.setAutoCommit(false);
      long begin = System.nanoTime() + Math.max(2, messages / 1000) * 1_000_000_000L;
      for (int i = 0; i < messages; i++) {
        long instant = begin + ThreadLocalRandom.current().nextLong(spanSeconds * 1_000_000_000L);
        long now = System.nanoTime();
        due.set(i, instant);
        publisher.publish(
            connection, List.of(Payloads.of(first + i, bytes)), Duration.ofNanos(instant - now));
        if (i % 100 == 99) {
          connection.commit();
        }
      }
      connection.commit();
      double behind = (System.nanoTime() - begin) / 1e9;
      boolean complete = sink.await(spanSeconds + 60);
      Numbers numbers = meter.read(sink.finished());
      consuming.stop();
      return lateness
          .summary(numbers, "lateness")
          .with("early", early.get(0))
          .with("published_too_late_s", Math.max(0, behind))
          .with("complete", complete ? 1 : 0);
    }
  }
}
