package dev.outbox4j.internal.order;

import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;

/**
 * When it is looked for rows that have fallen due. A pass that turns up many rows which are known,
 * or are read in their turn anyway, is followed by a longer pause. Confined to the fetcher.
 */
final class DueLook {
  private static final long EVERY = TimeUnit.MILLISECONDS.toNanos(200);
  private static final long AT_MOST = TimeUnit.SECONDS.toNanos(5);
  private static final long SOONEST = TimeUnit.MILLISECONDS.toNanos(1);

  /** So many known rows lengthen the pause by one. */
  private static final int KNOWN_ROWS = 1_000;

  private boolean again = true;
  private long lookedAt;
  private long pause = EVERY;
  private long known;
  private @Nullable Long dueAt;

  DueLook(long now) {
    this.lookedAt = now - EVERY;
  }

  boolean isDue(long now) {
    Long at = dueAt;
    return again || (at != null && now - at >= 0) || now - lookedAt >= pause;
  }

  /** There are buckets that have not been looked at. */
  void restart() {
    again = true;
  }

  void looked(long now) {
    lookedAt = now;
    dueAt = null;
  }

  /** A row was found that is held, or that is read in its turn. */
  void foundKnown() {
    known++;
  }

  /** Ends a look, of which there may be more to find at once. */
  void ended(boolean more) {
    again = more;
    if (!more) {
      pause = Math.min(AT_MOST, EVERY * (1 + known / KNOWN_ROWS));
      known = 0;
    }
  }

  boolean hasMore() {
    return again;
  }

  /** It is known when the next row falls due. */
  void nextAt(@Nullable Long at) {
    dueAt = at;
  }

  /** A row falls due then, too. */
  void alsoAt(long at) {
    Long known = dueAt;
    if (known == null || at - known < 0) {
      dueAt = at;
    }
  }

  /** Returns how long until a row falls due that is known of, or the longest time there is. */
  long untilDue(long now) {
    Long at = dueAt;
    return at == null ? Long.MAX_VALUE : Math.max(SOONEST, at - now);
  }
}
