package dev.outbox4j.postgres.internal;

import java.time.Duration;
import java.util.Collection;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.LongSupplier;

/**
 * Remembers which rows of the outbox another session has locked, so that writes on them pass locked
 * rows by and do not wait first; and for a while that a wait was in vain, since whoever locks one
 * row may lock more. Thread-safe.
 */
final class LockedRows {
  /** Ten times the longest wait, so that strangers' locks cost a tenth of the time at most. */
  private static final long PAUSE = Duration.ofSeconds(1).toNanos();

  private static final int MOST_REMEMBERED = 10_000;

  private final LongSupplier nanoTime;
  private final Set<Long> locked = ConcurrentHashMap.newKeySet();
  private volatile long waitedAt;

  LockedRows(LongSupplier nanoTime) {
    this.nanoTime = nanoTime;
    this.waitedAt = nanoTime.getAsLong() - PAUSE;
  }

  void waitedInVain() {
    waitedAt = nanoTime.getAsLong();
  }

  /** Learns what a write that passes locked rows by has told. */
  void passedBy(long[] asked, Collection<Long> busy) {
    if (!locked.isEmpty()) {
      for (long id : asked) {
        locked.remove(id);
      }
    }
    if (locked.size() > MOST_REMEMBERED) {
      locked.clear(); // some were given up, and nobody asks for them any more
    }
    locked.addAll(busy);
  }

  boolean areExpectedAmong(long[] ids) {
    if (nanoTime.getAsLong() - waitedAt < PAUSE) {
      return true;
    }
    if (!locked.isEmpty()) {
      for (long id : ids) {
        if (locked.contains(id)) {
          return true;
        }
      }
    }
    return false;
  }
}
