package dev.outbox4j.postgres.internal;

import java.time.Duration;

/**
 * Remembers for a while that another session locks rows of the outbox, so that writes pass them by
 * and do not wait first. Thread-safe.
 */
final class LockedRows {
  private static final long REMEMBERED = Duration.ofSeconds(30).toNanos();

  private volatile long seenAt = System.nanoTime() - REMEMBERED;

  void seen() {
    seenAt = System.nanoTime();
  }

  boolean areExpected() {
    return System.nanoTime() - seenAt < REMEMBERED;
  }
}
