package dev.outbox4j.poller.internal;

import java.math.BigDecimal;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayDeque;
import java.util.Deque;
import org.jspecify.annotations.Nullable;

/**
 * Which number was the greatest that could be seen, and when: whoever is behind that has everything
 * that was committed by then. Confined to one thread.
 */
final class SeenNumbers {
  private static final int MOST = 256;
  private static final Duration APART = Duration.ofMillis(20);

  private final Deque<Seen> all = new ArrayDeque<>();
  private @Nullable Instant completeAt;
  private @Nullable BigDecimal reached;

  private record Seen(Instant at, BigDecimal greatest) {}

  void forget() {
    all.clear();
    completeAt = null;
    reached = null;
  }

  void see(Instant at, String greatest) {
    if (all.isEmpty() || Duration.between(all.getLast().at(), at).compareTo(APART) >= 0) {
      if (all.size() >= MOST) {
        all.removeLast(); // the first ones are those that are come to first
      }
      all.add(new Seen(at, new BigDecimal(greatest)));
    }
  }

  /** By when all was committed that is before a number; null if that is not known. */
  @Nullable Instant before(String number) {
    BigDecimal now = new BigDecimal(number);
    if (reached != null && now.compareTo(reached) < 0) {
      completeAt = null; // the position was set back
    }
    reached = now;
    while (!all.isEmpty() && all.getFirst().greatest().compareTo(now) < 0) {
      completeAt = all.removeFirst().at();
    }
    return completeAt;
  }
}
