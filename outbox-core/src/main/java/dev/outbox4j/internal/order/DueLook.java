package dev.outbox4j.internal.order;

import dev.outbox4j.spi.BucketStore.DueRange;
import dev.outbox4j.spi.ScanBound;
import java.time.Duration;
import java.time.Instant;
import java.util.Collection;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;

/**
 * When to look which rows of which buckets have fallen due. A bucket is looked at from the first
 * due instant there is, and after that from shortly before the last look: what else became due
 * meanwhile is on the agenda, or is found by the walks through ids. A look that costs much, since
 * many rows are dead, is followed by a pause, and by looks at fewer buckets. Confined to the
 * fetcher.
 */
final class DueLook {
  private static final long EVERY = TimeUnit.MILLISECONDS.toNanos(200);
  private static final long SOONEST = TimeUnit.MILLISECONDS.toNanos(1);
  private static final Duration FIRST_LIMIT = Duration.ofMillis(250);
  private static final Duration LONGEST_LIMIT = Duration.ofSeconds(4);

  /** Looks that cost less are followed by no pause. */
  private static final long CHEAP = TimeUnit.MILLISECONDS.toNanos(25);

  private static final int PAUSE_PER_COST = 8;

  /** For clocks of servers, of which one takes over from another. */
  private static final Duration MARGIN = Duration.ofSeconds(10);

  /** What is left of a round; a round begins with all. */
  private final Set<Integer> left = new LinkedHashSet<>();

  private boolean unfinished = true;
  private int width = Integer.MAX_VALUE;
  private Duration limit = FIRST_LIMIT;
  private long lookedAt;
  private long pausesUntil;
  private @Nullable Long dueAt;

  DueLook(long now) {
    this.lookedAt = now - EVERY;
    this.pausesUntil = now;
  }

  boolean isDue(long now) {
    Long at = dueAt;
    return now - pausesUntil >= 0
        && (unfinished || (at != null && now - at >= 0) || now - lookedAt >= EVERY);
  }

  /** There are buckets that have not been looked at. */
  void restart() {
    unfinished = true;
    left.clear();
  }

  /** Returns where to look. */
  List<DueRange> next(Map<Integer, BucketScan> scans, long now) {
    left.retainAll(scans.keySet());
    if (left.isEmpty()) {
      left.addAll(scans.keySet());
      unfinished = true;
      if (dueAt != null && dueAt - now <= 0) {
        dueAt = null; // what comes after it is still to be learnt
      }
    }
    return left.stream()
        .limit(width)
        .map(scans::get)
        .map(scan -> new DueRange(scan.bucket(), scan.duePlace(), scan.place()))
        .toList();
  }

  /** After which time the server is to end the look. */
  Duration limit() {
    return limit;
  }

  /**
   * A look is over.
   *
   * @param ended the buckets of which there is no more to find
   */
  void looked(Collection<Integer> ended, long cost, long now) {
    left.removeAll(ended);
    unfinished = !left.isEmpty();
    lookedAt = now;
    if (cost > CHEAP) {
      pausesUntil = now + PAUSE_PER_COST * cost;
    } else if (width < Integer.MAX_VALUE / 2) {
      width *= 2;
    }
  }

  /** The server ended the look for its time limit. */
  void timedOut(int buckets, long cost, long now) {
    width = Math.max(1, buckets / 8);
    if (buckets == 1) {
      Duration longer = limit.multipliedBy(2);
      limit = longer.compareTo(LONGEST_LIMIT) < 0 ? longer : LONGEST_LIMIT;
    }
    pausesUntil = now + PAUSE_PER_COST * cost;
  }

  /** Returns from where the next look at a bucket goes on, of which all was found by an instant. */
  static ScanBound after(Instant lookedAt) {
    return new ScanBound(lookedAt.minus(MARGIN), Long.MIN_VALUE);
  }

  /** Tells whether there is more to look at now. */
  boolean hasMore(long now) {
    return unfinished && now - pausesUntil >= 0;
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

  /** Returns how long until there is something to look for, or the longest time there is. */
  long untilDue(long now) {
    long pause = Math.max(0, pausesUntil - now);
    if (unfinished) {
      return pause;
    }
    Long at = dueAt;
    return at == null ? Long.MAX_VALUE : Math.max(Math.max(SOONEST, pause), at - now);
  }
}
