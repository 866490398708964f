package dev.outbox4j.internal;

import java.util.concurrent.TimeUnit;

/**
 * How many rows to hold ready beyond the free workers: as many as they handle within {@link
 * #AHEAD}, by the rate just seen, so that rows never wait long under a lease while other processes
 * are idle, and fast handlers never wait for a claim. Learns on the fetcher's thread, may be read
 * on any.
 */
final class Prefetch {
  /** Well below any lease, and a few dozen times what a claim takes. */
  private static final long AHEAD = TimeUnit.MILLISECONDS.toNanos(50);

  private static final long MIN_SAMPLE = TimeUnit.MILLISECONDS.toNanos(1);
  private static final double SMOOTHING = 0.5;

  private final int least;
  private final int most;
  private double target;
  private volatile int published;
  private double rowsPerNano;
  private long sampledAt;
  private long takenThen;

  Prefetch(int workers, int batchSize) {
    this.least = Math.max(1, workers / 4);
    this.most = Math.max(least, 2 * batchSize);
    this.target = least;
    this.published = least;
  }

  /**
   * Learns from the rows taken so far.
   *
   * @param now the time
   * @param taken rows that workers took since the start
   * @param starving workers ran dry although the last claim was full
   */
  void learn(long now, long taken, boolean starving) {
    long elapsed = now - sampledAt;
    if (sampledAt == 0) {
      sampledAt = now;
      takenThen = taken;
    } else if (elapsed >= MIN_SAMPLE) {
      double sample = (taken - takenThen) / (double) elapsed;
      rowsPerNano += SMOOTHING * (sample - rowsPerNano);
      sampledAt = now;
      takenThen = taken;
      double byRate = rowsPerNano * AHEAD;
      target = starving ? Math.max(byRate, target) : byRate;
    }
    if (starving) {
      target *= 4;
    }
    target = Math.min(most, Math.max(least, target));
    published = (int) target;
  }

  int target() {
    return published;
  }
}
