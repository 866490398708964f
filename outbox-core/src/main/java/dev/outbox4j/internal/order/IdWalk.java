package dev.outbox4j.internal.order;

import dev.outbox4j.spi.BucketStore.Range;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.concurrent.TimeUnit;

/**
 * Walks through what lies below the places that were read, part by part: rows whose transaction was
 * committed late turn up there. It takes a bounded share of the time. Confined to the fetcher.
 */
final class IdWalk {
  private static final long FIRST_WIDTH = 100_000;
  private static final long SHORTEST_WIDTH = 1_000;
  private static final long LONGEST_WIDTH = 1L << 40;
  private static final long LEAST_PAUSE = TimeUnit.SECONDS.toNanos(1);
  private static final long CHEAP = TimeUnit.MILLISECONDS.toNanos(5);
  private static final long DEAR = TimeUnit.MILLISECONDS.toNanos(50);

  private final long shortestPause;
  private final long longestPause;
  private final int costShare;
  private boolean walking;
  private long position;
  private long end;
  private long width = FIRST_WIDTH;
  private long stepEnd;
  private boolean found;
  private long pause;
  private long allowedAt;
  private long affordableAt;

  /**
   * Creates a walk.
   *
   * @param shortestPause between two passes, of which the first has found something
   * @param longestPause between two that find nothing
   * @param costShare it may take one part in so many of the time
   * @param firstAt when the first pass begins
   */
  IdWalk(long shortestPause, long longestPause, int costShare, long now, long firstAt) {
    this.shortestPause = shortestPause;
    this.longestPause = longestPause;
    this.costShare = costShare;
    this.pause = shortestPause;
    this.allowedAt = firstAt;
    this.affordableAt = now;
  }

  /** Tells whether a pass is under way. */
  boolean isWalking() {
    return walking;
  }

  boolean isDue(long low, long high, long now) {
    return (walking || low < high) && now - allowedAt >= 0;
  }

  /** Returns how long until there is something to do, or the longest time there is. */
  long untilDue(long low, long high, long now) {
    return walking || low < high ? Math.max(0, allowedAt - now) : Long.MAX_VALUE;
  }

  /** Returns the next parts, above one id and up to another, of buckets read up to their places. */
  List<Range> next(long low, long high, Collection<BucketScan> scans) {
    if (!walking) {
      walking = true;
      found = false;
      position = low;
      end = high;
    }
    stepEnd = width > end - position ? end : position + width;
    List<Range> ranges = new ArrayList<>();
    for (BucketScan scan : scans) {
      long upTo = Math.min(stepEnd, scan.place());
      if (position < upTo) {
        ranges.add(new Range(scan.bucket(), position, upTo));
      }
    }
    return ranges;
  }

  /**
   * The last part was looked through.
   *
   * @param seenTo up to this id, if there was more than could be read at once; or the greatest id
   * @param foundRows whether a row was found that nobody knew of
   * @return true if that was the end of a pass
   */
  boolean passed(long seenTo, boolean foundRows, long cost, long now) {
    found |= foundRows;
    if (cost < CHEAP) {
      width = Math.min(LONGEST_WIDTH, width * 2);
    } else if (cost > DEAR) {
      width = Math.max(SHORTEST_WIDTH, width / 2);
    }
    position = Math.min(stepEnd, Math.max(position, seenTo));
    affordableAt = now + cost * costShare;
    allowedAt = affordableAt;
    if (position < end) {
      return false;
    }
    walking = false;
    pause = found ? shortestPause : Math.min(longestPause, 2 * pause);
    allowedAt = Math.max(allowedAt, now + pause);
    affordableAt = Math.max(affordableAt, now + LEAST_PAUSE);
    return true;
  }

  /** The server ended the last part for its time limit. */
  void timedOut(long cost, long now) {
    width = Math.max(SHORTEST_WIDTH, width / 8);
    affordableAt = now + cost * costShare;
    allowedAt = affordableAt;
  }

  /** Lets the next pass begin as soon as the cost of the one before allows. */
  void beginEarly(long now) {
    long earliest = affordableAt - now > 0 ? affordableAt : now;
    if (earliest - allowedAt < 0) {
      allowedAt = earliest;
    }
  }

  /** There is something new to look through. */
  void restart(long now) {
    pause = shortestPause;
    allowedAt = Math.min(allowedAt, now + shortestPause);
  }
}
