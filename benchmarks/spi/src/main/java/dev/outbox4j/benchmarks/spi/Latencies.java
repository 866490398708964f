package dev.outbox4j.benchmarks.spi;

import java.util.Arrays;
import java.util.concurrent.atomic.AtomicInteger;

/** Durations in nanoseconds, kept exactly. Recording is thread-safe. */
final class Latencies {
  private final long[] nanos;
  private final AtomicInteger count = new AtomicInteger();

  Latencies(int capacity) {
    nanos = new long[capacity];
  }

  void record(long duration) {
    int at = count.getAndIncrement();
    if (at < nanos.length) {
      nanos[at] = duration;
    }
  }

  /** Adds p50, p95, p99 and the maximum in milliseconds. */
  Numbers summary(Numbers into, String name) {
    long[] sorted = Arrays.copyOf(nanos, Math.min(count.get(), nanos.length));
    Arrays.sort(sorted);
    return into.with(name + "_p50_ms", percentile(sorted, 0.50))
        .with(name + "_p95_ms", percentile(sorted, 0.95))
        .with(name + "_p99_ms", percentile(sorted, 0.99))
        .with(name + "_max_ms", percentile(sorted, 1));
  }

  private static double percentile(long[] sorted, double share) {
    if (sorted.length == 0) {
      return Double.NaN;
    }
    int at = (int) Math.ceil(share * sorted.length) - 1;
    return sorted[Math.max(0, at)] / 1e6;
  }
}
