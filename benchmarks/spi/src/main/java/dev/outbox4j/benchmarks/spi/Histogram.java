package dev.outbox4j.benchmarks.spi;

import java.util.concurrent.atomic.AtomicLongArray;

/** Durations in buckets, each 2 % wider than the one before, for more than fit into memory. */
final class Histogram {
  private static final double WIDTH = Math.log(1.02);

  private final AtomicLongArray buckets = new AtomicLongArray(2_000);

  void record(long nanos) {
    int bucket = (int) (Math.log((double) Math.max(1, nanos)) / WIDTH);
    buckets.incrementAndGet(Math.min(bucket, buckets.length() - 1));
  }

  /** The upper end of the bucket that a percentile is in, in milliseconds. */
  double percentile(double share) {
    long all = 0;
    for (int i = 0; i < buckets.length(); i++) {
      all += buckets.get(i);
    }
    long below = 0;
    for (int i = 0; i < buckets.length(); i++) {
      below += buckets.get(i);
      if (all > 0 && below >= share * all) {
        return Math.exp((i + 1) * WIDTH) / 1e6;
      }
    }
    return Double.NaN;
  }
}
