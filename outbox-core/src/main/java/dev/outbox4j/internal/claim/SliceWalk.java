package dev.outbox4j.internal.claim;

import dev.outbox4j.spi.ClaimRequest.Range;
import dev.outbox4j.spi.ScanBound;
import java.time.Duration;
import org.jspecify.annotations.Nullable;

/**
 * A walk through a part of one queue, from the bound downwards, in slices that are each looked
 * through within a time limit. It goes by due instant, since a scan over dead entries tells nothing
 * of how far it came. After its end it begins anew. Confined to the fetcher.
 */
final class SliceWalk {
  static final Duration FIRST_SLICE = Duration.ofMinutes(1);

  private static final Duration WIDEST_SLICE = Duration.ofDays(36_525);
  private static final Duration NARROWEST_SLICE = Duration.ofNanos(1_000);

  /** By how much a slice becomes narrower: a single instant may hold what fills the limit. */
  private static final int NARROWER = 32;

  /** A slice is followed by a pause of so many times its cost, so that claims above go on. */
  private static final int SHARE = 8;

  /**
   * After so many slices that passed a wider one is tried, whatever they took: the answer of a
   * distant server takes long however narrow a slice is.
   */
  private static final int PASSES = 4;

  private final @Nullable Duration depth;
  private final long pause;
  private final Duration usualLimit;
  private final Duration longestLimit;

  private @Nullable ScanBound top;
  private @Nullable ScanBound end;

  /** Where a slice that found more goes on; null at its beginning. */
  private @Nullable ScanBound reached;

  /** The bottom of that slice: below it nothing was found yet. */
  private @Nullable ScanBound reachedFrom;

  private boolean begun;
  private Duration width = FIRST_SLICE;
  private int passes;
  private Duration limit;
  private long cost;
  private long allowedAt;

  /**
   * Creates a walk.
   *
   * @param depth how far below the bound it goes; null for all there is
   * @param pause nanoseconds from its end to its next beginning, at least
   * @param usualLimit the time for a slice
   * @param longestLimit the time for the narrowest slice, where the usual one is too short
   */
  SliceWalk(@Nullable Duration depth, long pause, Duration usualLimit, Duration longestLimit) {
    this.depth = depth;
    this.pause = pause;
    this.usualLimit = QueueScan.min(usualLimit, longestLimit);
    this.longestLimit = longestLimit;
    this.limit = this.usualLimit;
  }

  /** Begins anew, not before an instant. */
  void restart(long at) {
    begun = false;
    reached = null;
    width = QueueScan.min(width, FIRST_SLICE);
    passes = 0;
    limit = usualLimit;
    allowedAt = at;
  }

  long allowedAt() {
    return allowedAt;
  }

  /** Returns the next slice; a walk that begins does so at the bound. */
  QueueScan.Plan next(@Nullable ScanBound bound) {
    if (!begun) {
      begun = true;
      cost = 0;
      top = bound;
      end = depth == null ? null : below(depth);
    }
    return new QueueScan.Plan(
        new Range(QueueScan.later(bottom(), reached), top), QueueScan.min(limit, longestLimit));
  }

  private @Nullable ScanBound bottom() {
    ScanBound byWidth =
        width.compareTo(WIDEST_SLICE) >= 0 ? end : QueueScan.later(end, below(width));
    return reached == null ? byWidth : QueueScan.later(byWidth, reachedFrom);
  }

  private @Nullable ScanBound below(Duration span) {
    return top == null ? null : new ScanBound(top.availableAt().minus(span), Long.MAX_VALUE);
  }

  /** Learns that a slice found more than it could take: it goes on there, at once. */
  void found(@Nullable ScanBound last, long took, long now) {
    cost += took;
    reachedFrom = bottom();
    reached = QueueScan.later(reached, last);
    allowedAt = now;
  }

  /**
   * Learns that a slice was looked through.
   *
   * @return the cost of the whole walk in nanoseconds if that was its end, else -1
   */
  long passed(long took, long now) {
    cost += took;
    ScanBound bottom = bottom();
    if (isEnd(bottom)) {
      restart(now + Math.max(pause, took * SHARE));
      return cost;
    }
    lower(bottom);
    allowedAt = now + took * SHARE;
    limit = usualLimit;
    passes++;
    if (took < usualLimit.toNanos() / 4 || passes >= PASSES) {
      int wider = took < usualLimit.toNanos() / 16 ? 8 : 2;
      width = QueueScan.min(width.multipliedBy(wider), WIDEST_SLICE);
      passes = 0;
    }
    return -1;
  }

  private boolean isEnd(@Nullable ScanBound bottom) {
    return bottom == null || (end != null && bottom.compareTo(end) <= 0);
  }

  /** Goes on below; what is left to pass of a slice that was narrowed comes next. */
  private void lower(@Nullable ScanBound bottom) {
    top = bottom;
    if (bottom == null || (reached != null && bottom.compareTo(reached) <= 0)) {
      reached = null;
    }
  }

  /** Learns that the server ended a slice for its time limit. */
  void timedOut(long took, long now) {
    cost += took;
    allowedAt = now + took * SHARE;
    passes = 0;
    if (width.compareTo(NARROWEST_SLICE) > 0) {
      Duration narrower = width.compareTo(WIDEST_SLICE) >= 0 ? Duration.ofDays(1) : width;
      width = narrower.dividedBy(NARROWER);
      if (width.compareTo(NARROWEST_SLICE) < 0) {
        width = NARROWEST_SLICE;
      }
    } else if (limit.compareTo(longestLimit) < 0) {
      limit = limit.multipliedBy(4); // very many rows of one instant
    } else {
      skip(now);
    }
  }

  /** Leaves a slice out of this walk. */
  private void skip(long now) {
    ScanBound bottom = bottom();
    if (isEnd(bottom)) {
      restart(Math.max(allowedAt, now + pause));
    } else {
      lower(bottom);
      limit = usualLimit;
    }
  }
}
