package dev.outbox4j.monitor.internal;

import dev.outbox4j.OutboxStoreException;
import java.time.Duration;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;

/**
 * What this node knows of instances whose rows strangers have locked, and how long the commit of a
 * check waits for a row. Whoever locks one may lock many, and for long: once a wait was in vain,
 * the next ones are short for a while, and the instance comes again later and later. So locked ones
 * take no workers from others. Thread-safe.
 */
final class LockWaits {
  private static final long REMEMBERED = TimeUnit.SECONDS.toNanos(10);

  /** Enough for a verb, a look or another node, which are about to commit. */
  private static final String LONG = "500ms";

  private static final String SHORT = "100ms";
  private static final Duration FIRST = Duration.ofSeconds(1);
  private static final Duration LONGEST = Duration.ofSeconds(30);
  private static final int MOST_DOUBLINGS = 5;
  private static final long FORGOTTEN_AFTER = TimeUnit.MINUTES.toNanos(2);
  private static final int MOST_INSTANCES = 10_000;
  private static final String LOCK_NOT_AVAILABLE = "55P03";

  // guarded by this; the one that was locked last is the last one
  private final Map<Key, Times> locked =
      new LinkedHashMap<>() {
        @Override
        protected boolean removeEldestEntry(Map.Entry<Key, Times> eldest) {
          return size() > MOST_INSTANCES;
        }
      };

  private volatile long inVainAt = System.nanoTime() - REMEMBERED;

  private record Key(String id, long execution) {
    static Key of(Instance instance) {
      return new Key(instance.id(), instance.execution());
    }
  }

  /**
   * How often in a row an instance was locked.
   *
   * @param count how often
   * @param last when last
   */
  private record Times(int count, long last) {}

  /** {@return whether a statement failed since it has waited for a lock for too long} */
  static boolean isLocked(OutboxStoreException failure) {
    return LOCK_NOT_AVAILABLE.equals(failure.sqlState().orElse(null));
  }

  /** {@return the server's {@code lock_timeout}} */
  String timeout() {
    return System.nanoTime() - inVainAt < REMEMBERED ? SHORT : LONG;
  }

  /**
   * Its row was waited for, or looked at, and is locked.
   *
   * @return when it is to come again: later each time in a row, but not later than it expires
   */
  synchronized Duration inVain(Instance instance) {
    long now = System.nanoTime();
    inVainAt = now;
    Times before = locked.remove(Key.of(instance)); // so that it is the last one
    int count = before == null || isForgotten(before, now) ? 0 : before.count();
    locked.put(Key.of(instance), new Times(count + 1, now));
    Duration wait = FIRST.multipliedBy(1L << Math.min(count, MOST_DOUBLINGS));
    return shortest(shortest(wait, LONGEST), instance.untilExpiry());
  }

  /** One that has expired is waited for like any other. */
  private static Duration shortest(Duration wait, @Nullable Duration left) {
    return left == null || left.isNegative() || left.compareTo(wait) > 0 ? wait : left;
  }

  /** {@return whether it was locked when it was here last} */
  synchronized boolean wasLocked(Instance instance) {
    Times times = locked.get(Key.of(instance));
    return times != null && !isForgotten(times, System.nanoTime());
  }

  /** Its row was written. */
  synchronized void free(Instance instance) {
    locked.remove(Key.of(instance));
  }

  private static boolean isForgotten(Times times, long now) {
    return now - times.last() >= FORGOTTEN_AFTER;
  }
}
