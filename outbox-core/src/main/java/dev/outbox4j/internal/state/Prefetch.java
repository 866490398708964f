package dev.outbox4j.internal.state;

import java.util.concurrent.TimeUnit;

/**
 * How many rows to hold ready beyond the free workers: as many as they handle within 50 ms, by the
 * rate just seen, so that rows never wait long under a lease while other processes are idle, and
 * fast handlers never wait for a claim. None while handlers are slow, or no worker takes any.
 * Learns on the fetcher's thread, may be read on any.
 */
public final class Prefetch {
  /** Well below any lease, and a few dozen times what a claim takes. */
  private static final long AHEAD = TimeUnit.MILLISECONDS.toNanos(50);

  private static final long LONGEST_AHEAD = TimeUnit.SECONDS.toNanos(1);

  private static final long MIN_SAMPLE = TimeUnit.MILLISECONDS.toNanos(1);
  private static final double SMOOTHING = 0.5;

  /** For how long rows are held ready for batches after one of their types was seen. */
  private static final long BATCHES_SEEN = TimeUnit.SECONDS.toNanos(1);

  /** Below, a row that is held ready would wait longer than a claim takes by far. */
  private static final double SLOW = 0.5;

  private final int floor;
  private final int least;
  private final int most;
  private double target;
  private volatile int published;
  private volatile boolean stalled;
  private volatile boolean batches;
  private volatile long batchSeenAt;
  private double rowsPerNano;
  private long sampledAt;
  private long handledThen;
  private long ahead = AHEAD;

  public Prefetch(int workers, int batchSize) {
    this(workers, batchSize, 1);
  }

  /**
   * Holds at least as many rows ready as the handlers of all workers take at once, however slow
   * they are, while there are messages for such handlers.
   */
  public Prefetch(int workers, int batchSize, int largestBatch) {
    long together = largestBatch > 1 ? (long) workers * largestBatch : 0;
    this.floor = (int) Math.min(2L * batchSize, together);
    this.least = Math.max(1, workers / 4);
    this.most = Math.max(least, 2 * batchSize);
  }

  /**
   * Learns how long it takes to get more rows. Where rows are not leased one by one, none is kept
   * from others by being held ready, so enough are to go on with meanwhile, however long that is.
   *
   * @param nanos what it took the last time
   */
  public void takes(long nanos) {
    long smoothed = ahead + (long) (SMOOTHING * (2 * nanos - ahead));
    ahead = Math.max(AHEAD, Math.min(LONGEST_AHEAD, smoothed));
  }

  /**
   * Learns from the rows handled so far.
   *
   * @param now the time
   * @param seen rows whose handlers have ended since the start
   * @param starving workers ran dry although the last claim was full
   */
  public void learn(long now, long seen, boolean starving) {
    long handled = Math.max(handledThen, seen); // runners that find nothing count as running
    long elapsed = now - sampledAt;
    if (sampledAt == 0) {
      sampledAt = now;
      handledThen = handled;
    } else if (elapsed >= MIN_SAMPLE) {
      double sample = (handled - handledThen) / (double) elapsed;
      rowsPerNano += SMOOTHING * (sample - rowsPerNano);
      sampledAt = now;
      handledThen = handled;
      double byRate = rowsPerNano * ahead;
      target = starving ? Math.max(byRate, target) : byRate;
    }
    if (starving && rowsPerNano * ahead >= SLOW) { // else a claim is short beside a handler
      target = 4 * Math.max(1, target);
    }
    target = target < SLOW ? 0 : Math.min(most, Math.max(least, target));
    published = (int) target;
  }

  /** Rows were given back because no worker took them for long. */
  public void stalled() {
    stalled = true;
  }

  /** A worker takes a row again. */
  public void taken() {
    if (stalled) {
      stalled = false;
    }
  }

  /** A message was taken that is handled with others. */
  public void batchSeen() {
    batchSeenAt = System.nanoTime();
    batches = true;
  }

  public int target() {
    if (stalled) {
      return 0;
    }
    int known = published;
    return known < floor && batches && System.nanoTime() - batchSeenAt < BATCHES_SEEN
        ? floor
        : known;
  }
}
