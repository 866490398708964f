package dev.outbox4j.triggers.internal;

import dev.outbox4j.RateLimit;
import java.time.Duration;
import java.util.HashMap;
import java.util.Map;

/**
 * Leaves messages to other nodes whose types this one does not know: newer nodes do, or older ones.
 * It lets go of the message at once, which wakes the others, and claims nothing itself for a
 * moment. If nobody takes it, it is left for longer and longer. Thread-safe.
 */
public final class LeftToOthers implements RateLimit {
  /** For another node to hear of the message and to claim it. */
  private static final Duration MOMENT = Duration.ofMillis(50);

  private static final int TIMES_AT_ONCE = 20;
  private static final Duration FORGOTTEN_AFTER = Duration.ofMinutes(2);
  private static final int MOST_DOUBLINGS = 10;
  private static final Duration LONGEST = Duration.ofSeconds(30);

  /** How many are remembered; it is seldom more than a handful. */
  private static final int MOST_MESSAGES = 10_000;

  private final Map<Long, Times> ofMessages = new HashMap<>();
  private final Map<String, Long> ofTypes = new HashMap<>();

  private volatile long until = System.nanoTime();

  /**
   * How often a message was left in a row.
   *
   * @param count how often
   * @param last when last
   */
  private record Times(int count, long last) {}

  /**
   * Leaves a message.
   *
   * @param message its id
   * @return for how long it is not to be due
   */
  public synchronized Duration leave(long message) {
    long now = System.nanoTime();
    if (ofMessages.size() >= MOST_MESSAGES) {
      ofMessages.clear(); // they begin anew, and others have them at once
    }
    Times times = ofMessages.get(message);
    int before = times == null || isForgotten(times.last(), now) ? 0 : times.count();
    ofMessages.put(message, new Times(before + 1, now));
    if (before < TIMES_AT_ONCE) {
      until = now + MOMENT.toNanos();
      return Duration.ZERO;
    }
    int doublings = Math.min(before - TIMES_AT_ONCE, MOST_DOUBLINGS);
    Duration longer = MOMENT.multipliedBy(1L << doublings);
    return longer.compareTo(LONGEST) > 0 ? LONGEST : longer;
  }

  /** {@return whether none of a type's messages was left lately; now one is} */
  public synchronized boolean isNew(String type) {
    long now = System.nanoTime();
    Long last = ofTypes.put(type, now);
    return last == null || isForgotten(last, now);
  }

  private static boolean isForgotten(long last, long now) {
    return now - last >= FORGOTTEN_AFTER.toNanos();
  }

  @Override
  public int available() {
    return nanosLeft() > 0 ? 0 : NO_LIMIT;
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
