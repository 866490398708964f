package dev.outbox4j.dlq;

import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import java.util.function.LongConsumer;
import java.util.function.LongSupplier;

/**
 * Lets through so many in a second, evenly, from when it is asked first. Of what was late, 0.3 s
 * are made up for, so that from ten a second on no ten seconds are more than 5 % too fast; the rest
 * is given up.
 */
final class Pace {
  private static final long LONGEST_DEBT = TimeUnit.MILLISECONDS.toNanos(300);

  private final double nanosOfOne;
  private final LongSupplier clock;
  private final LongConsumer sleep;
  private boolean begun;
  private long next;

  /** Sets the rate. */
  Pace(int perSecond) {
    this(perSecond, System::nanoTime, LockSupport::parkNanos);
  }

  /** The same by another clock; both are of nanoseconds, and a sleep may end early. */
  Pace(int perSecond, LongSupplier clock, LongConsumer sleep) {
    this.nanosOfOne = TimeUnit.SECONDS.toNanos(1) / (double) perSecond;
    this.clock = clock;
    this.sleep = sleep;
  }

  /**
   * Waits until what has gone has had its time.
   *
   * @return false if the thread was interrupted
   */
  boolean await() {
    long now = clock.getAsLong();
    if (!begun) {
      begun = true;
      next = now;
    }
    if (next - now < -LONGEST_DEBT) {
      next = now - LONGEST_DEBT;
    }
    while (next - now > 0) {
      sleep.accept(next - now);
      if (Thread.currentThread().isInterrupted()) {
        return false;
      }
      now = clock.getAsLong();
    }
    return true;
  }

  /** Counts what has gone. */
  void charge(double count) {
    next += (long) (count * nanosOfOne);
  }
}
