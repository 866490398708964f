package dev.outbox4j.dlq;

import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;

/**
 * Lets through so many in a second, evenly. Of what was late, half a second is made up for, and the
 * rest is given up.
 */
final class Pace {
  private static final long LONGEST_DEBT = TimeUnit.MILLISECONDS.toNanos(500);

  private final double nanosOfOne;
  private long next = System.nanoTime();

  /** Sets the rate. */
  Pace(int perSecond) {
    this.nanosOfOne = TimeUnit.SECONDS.toNanos(1) / (double) perSecond;
  }

  /**
   * Waits until what has gone has had its time.
   *
   * @return false if the thread was interrupted
   */
  boolean await() {
    long now = System.nanoTime();
    if (next - now < -LONGEST_DEBT) {
      next = now - LONGEST_DEBT;
    }
    while (next - now > 0) {
      LockSupport.parkNanos(next - now);
      if (Thread.currentThread().isInterrupted()) {
        return false;
      }
      now = System.nanoTime();
    }
    return true;
  }

  /** Counts what has gone. */
  void charge(double count) {
    next += (long) (count * nanosOfOne);
  }
}
