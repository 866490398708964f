package dev.outbox4j.timer.internal;

import dev.outbox4j.RateLimit;
import java.time.Duration;
import java.util.LinkedHashMap;
import java.util.Map;

/**
 * Leaves messages to other nodes whose timers this one does not know: newer nodes do, or older
 * ones. It lets go of the message at once, which wakes the others, and claims nothing itself for a
 * moment. If nobody takes it, it is left for longer and longer. Thread-safe.
 */
final class LeftToOthers implements RateLimit {
  /** For another node to hear of the message and to claim it. */
  private static final Duration MOMENT = Duration.ofMillis(50);

  private static final int TIMES_AT_ONCE = 20;
  private static final int MOST_MESSAGES = 1_000;
  private static final int MOST_DOUBLINGS = 10;
  private static final Duration LONGEST = Duration.ofSeconds(30);

  private final Map<Long, Integer> times =
      new LinkedHashMap<>() {
        @Override
        protected boolean removeEldestEntry(Map.Entry<Long, Integer> eldest) {
          return size() > MOST_MESSAGES;
        }
      };

  private volatile long until = System.nanoTime();

  /**
   * Leaves a message.
   *
   * @param message its id
   * @return for how long it is not to be due
   */
  synchronized Duration leave(long message) {
    int before = times.merge(message, 1, Integer::sum) - 1;
    until = System.nanoTime() + MOMENT.toNanos();
    if (before < TIMES_AT_ONCE) {
      return Duration.ZERO;
    }
    int doublings = Math.min(before - TIMES_AT_ONCE, MOST_DOUBLINGS);
    Duration longer = MOMENT.multipliedBy(1L << doublings);
    return longer.compareTo(LONGEST) > 0 ? LONGEST : longer;
  }

  /** {@return whether a message was never left} */
  synchronized boolean isNew(long message) {
    return !times.containsKey(message);
  }

  @Override
  public int available() {
    return nanosLeft() > 0 ? 0 : Integer.MAX_VALUE;
  }

  @Override
  public void take(int messages) {}

  @Override
  public Duration untilNext() {
    return Duration.ofNanos(Math.max(0, nanosLeft()));
  }

  private long nanosLeft() {
    return until - System.nanoTime();
  }
}
