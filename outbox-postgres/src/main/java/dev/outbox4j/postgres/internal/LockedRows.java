package dev.outbox4j.postgres.internal;

import java.time.Duration;
import java.util.function.LongSupplier;

/**
 * Remembers for a while that another session locks rows of the outbox, so that writes pass them by
 * and do not wait first. Thread-safe.
 */
final class LockedRows {
  private static final long REMEMBERED = Duration.ofSeconds(30).toNanos();

  private final LongSupplier nanoTime;
  private volatile long seenAt;

  LockedRows(LongSupplier nanoTime) {
    this.nanoTime = nanoTime;
    this.seenAt = nanoTime.getAsLong() - REMEMBERED;
  }

  void seen() {
    seenAt = nanoTime.getAsLong();
  }

  boolean areExpected() {
    return nanoTime.getAsLong() - seenAt < REMEMBERED;
  }
}
