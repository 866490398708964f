package dev.outbox4j.triggers.internal;

import dev.outbox4j.RateLimit;
import java.time.Duration;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.SortedSet;
import java.util.TreeSet;
import java.util.function.LongSupplier;

/**
 * Leaves messages to other nodes whose types this one does not know: newer nodes do, or older ones.
 * It lets go of the message at once, which wakes the others, and claims nothing itself for a
 * moment. If nobody takes it, or there are very many of its type, it is left for longer and longer,
 * and nothing else waits for it. While others are seen to handle the type, it is let go of at once
 * however many there are, and the moments are longer the more of what is claimed is theirs: they
 * are only busy, and what waited for its time would keep them from it. Thread-safe.
 */
public final class LeftToOthers implements RateLimit {
  /** For another node to hear of the message and to claim it. */
  private static final Duration MOMENT = Duration.ofMillis(50);

  /**
   * While others handle the type, where many were left lately, and at most half of what is claimed
   * is theirs: those that were left come after what waits, so it is none of them that is claimed
   * next.
   */
  private static final Duration SHORTEST_MOMENT = Duration.ofMillis(10);

  private static final int MANY_LATELY = 8;

  /** Where nothing is claimed but what others handle. */
  private static final Duration LONGEST_MOMENT = Duration.ofSeconds(1);

  private static final int TIMES_AT_ONCE = 20;

  /** Of a type; with more, this node would claim nothing else. */
  private static final int MOST_AT_ONCE = 1_000;

  /** Of a type: those that come one by one, and that others take, are never very many. */
  private static final double COUNTS_HALF_AFTER = (double) Duration.ofMinutes(1).toNanos();

  private static final double NEVER = Double.POSITIVE_INFINITY;
  private static final int DOUBLINGS_OF_MANY = 5;
  private static final Duration FORGOTTEN_AFTER = Duration.ofMinutes(2);
  private static final int MOST_DOUBLINGS = 10;
  private static final Duration LONGEST = Duration.ofSeconds(30);

  /** While others handle the type. */
  private static final Duration LONGEST_OF_HANDLED = Duration.ofSeconds(1);

  private static final Duration HANDLED_LATELY = Duration.ofMinutes(1);

  /** How many are remembered; it is seldom more than a handful. */
  private static final int MOST_MESSAGES = 10_000;

  private final Map<Long, Times> ofMessages =
      new LinkedHashMap<>() {
        @Override
        protected boolean removeEldestEntry(Map.Entry<Long, Times> eldest) {
          return size() > MOST_MESSAGES;
        }
      };
  private final Map<String, Times> ofTypes = new HashMap<>();
  private final Map<String, Long> handledAt = new HashMap<>();

  // of the latest claims; each counts half of the one after it
  private double claimed;
  private double others;

  private final LongSupplier nanoTime;
  private volatile long until;

  /**
   * How often a message was left in a row, or those of a type were.
   *
   * @param count how often; of a type, what was long ago counts less
   * @param last when last
   * @param progress how far the message had come then
   */
  private record Times(double count, long last, long progress) {}

  /** Creates one that has left nothing. */
  public LeftToOthers() {
    this(System::nanoTime);
  }

  LeftToOthers(LongSupplier nanoTime) {
    this.nanoTime = nanoTime;
    this.until = nanoTime.getAsLong();
  }

  /**
   * Leaves a message of which it does not show whether others handle it.
   *
   * @param type its type
   * @param message its id
   * @return for how long it is not to be due
   */
  public Duration leave(String type, long message) {
    return leave(type, message, 0);
  }

  /**
   * Leaves a message that comes again and again.
   *
   * @param type its type
   * @param message its id
   * @param progress how far it has come: another number once others have handled it
   * @return for how long it is not to be due
   */
  public synchronized Duration leave(String type, long message, long progress) {
    long now = nanoTime.getAsLong();
    Times before = ofMessages.get(message);
    if (before != null && before.progress() != progress) {
      ofMessages.remove(message);
      handled(type);
    }
    others++;
    boolean handled = isHandledLately(type, now);
    int ofMessage = countsOneMore(ofMessages, message, progress, now, NEVER) - TIMES_AT_ONCE;
    int ofType = countsOneMore(ofTypes, type, 0, now, COUNTS_HALF_AFTER) / MOST_AT_ONCE;
    if (ofMessage < 0 && (handled || ofType == 0)) {
      long end = now + moment(type).toNanos();
      until = end - until > 0 ? end : until;
      return Duration.ZERO;
    }
    int doublings = Math.max(ofMessage, ofType == 0 ? 0 : DOUBLINGS_OF_MANY + log2(ofType));
    Duration longer = MOMENT.multipliedBy(1L << Math.min(doublings, MOST_DOUBLINGS));
    Duration longest = handled ? LONGEST_OF_HANDLED : LONGEST;
    return longer.compareTo(longest) > 0 ? longest : longer;
  }

  /**
   * Where many are left that others handle, it is as many times as long as there are others'
   * messages for each of this node's.
   */
  synchronized Duration moment(String type) {
    if (others < MANY_LATELY || !isHandledLately(type, nanoTime.getAsLong())) {
      return MOMENT;
    }
    double ofOne = Math.max(1, others / Math.max(1, claimed - others));
    Duration moment = Duration.ofNanos((long) (SHORTEST_MOMENT.toNanos() * ofOne));
    return moment.compareTo(LONGEST_MOMENT) > 0 ? LONGEST_MOMENT : moment;
  }

  /**
   * Notes that others are seen to handle messages of a type: however many were left, that was for
   * no want of handlers.
   *
   * @param type the type
   */
  public synchronized void handled(String type) {
    handledAt.put(type, nanoTime.getAsLong());
    ofTypes.computeIfPresent(type, (name, times) -> new Times(0, times.last(), 0));
  }

  private boolean isHandledLately(String type, long now) {
    Long last = handledAt.get(type);
    return last != null && now - last < HANDLED_LATELY.toNanos();
  }

  /** Returns how often it was left before. */
  private static <K> int countsOneMore(
      Map<K, Times> all, K key, long progress, long now, double halfAfter) {
    Times times = all.remove(key); // so that it is the youngest
    double before =
        times == null || isForgotten(times.last(), now)
            ? 0
            : times.count() * Math.pow(0.5, (now - times.last()) / halfAfter);
    all.put(key, new Times(before + 1, now, progress));
    return (int) before;
  }

  private static int log2(int number) {
    return Integer.SIZE - 1 - Integer.numberOfLeadingZeros(number);
  }

  /** {@return whether none of a type's messages was left lately} */
  public synchronized boolean isNew(String type) {
    Times times = ofTypes.get(type);
    return times == null || isForgotten(times.last(), nanoTime.getAsLong());
  }

  /** {@return the types of which a message was left lately, in order} */
  public synchronized SortedSet<String> types() {
    long now = nanoTime.getAsLong();
    SortedSet<String> types = new TreeSet<>();
    ofTypes.forEach(
        (type, times) -> {
          if (!isForgotten(times.last(), now)) {
            types.add(type);
          }
        });
    return types;
  }

  private static boolean isForgotten(long last, long now) {
    return now - last >= FORGOTTEN_AFTER.toNanos();
  }

  @Override
  public int available() {
    return nanosLeft() > 0 ? 0 : NO_LIMIT;
  }

  @Override
  public synchronized void take(int messages) {
    claimed = claimed / 2 + messages;
    others /= 2;
  }

  @Override
  public Duration untilNext() {
    return Duration.ofNanos(Math.max(0, nanosLeft()));
  }

  private long nanosLeft() {
    return until - nanoTime.getAsLong();
  }
}
