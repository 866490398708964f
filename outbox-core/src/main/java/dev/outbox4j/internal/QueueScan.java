package dev.outbox4j.internal;

import dev.outbox4j.spi.ClaimRequest.Range;
import dev.outbox4j.spi.ClaimResult;
import dev.outbox4j.spi.ClaimedRow;
import dev.outbox4j.spi.ScanBound;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;

/**
 * Where in one queue the next claim looks. Confined to the fetcher.
 *
 * <p>The bound trails what was claimed by a few claims; it only spares the scan the dead index
 * entries at the head of a queue. Rows can become claimable below it, because their transaction
 * committed late, their lease ran out or they were released. So a <em>sweep</em>, a claim without
 * the bound, runs whenever the queue seems drained and about once a second, less often while it
 * costs much and finds nothing. A sweep that finds more than it may take goes on where it ended:
 * rows that were handled since cannot be removed while an old transaction is open, and each claim
 * would pass all of them again.
 *
 * <p>No sweep may keep claims above the bound waiting: the server ends it after {@link
 * #SWEEP_LIMIT}. Where that happens, the queue is swept in slices from the bound downwards, each as
 * wide as can be looked through in {@link #SLICE_LIMIT}, with claims above the bound in between.
 * The walk goes by due instant, since a scan over dead entries tells nothing of how far it came.
 */
final class QueueScan {
  static final Duration SWEEP_LIMIT = Duration.ofSeconds(1);
  static final Duration SLICE_LIMIT = Duration.ofMillis(250);

  private static final int TRAIL = 8;
  private static final long SWEEP_EVERY = TimeUnit.SECONDS.toNanos(1);
  private static final long CHEAP = TimeUnit.MILLISECONDS.toNanos(5);
  private static final long LONGEST_PAUSE = TimeUnit.SECONDS.toNanos(20);

  /** A sweep that finds nothing may take this share of the time: one part in so many. */
  private static final int COST_SHARE = 20;

  /** Who is in reserve takes a slice now and then: who is on watch may have died. */
  private static final long RARELY = TimeUnit.SECONDS.toNanos(5);

  /** A slice may take more, so that a pass comes to an end. */
  private static final int SLICE_SHARE = 8;

  /** What became due before that may be left to sweeps once a claim has found all there was. */
  private static final Duration RECENT = Duration.ofSeconds(10);

  private static final Duration FIRST_SLICE = Duration.ofMinutes(1);
  private static final Duration WIDEST_SLICE = Duration.ofDays(36_525);
  private static final Duration NARROWEST_SLICE = Duration.ofNanos(1_000);
  private static final Duration LONGEST_LIMIT = Duration.ofSeconds(8);

  /** Above every row: a claim there finds nothing and costs nothing, but tells the time. */
  private static final ScanBound NOWHERE =
      new ScanBound(Instant.parse("9999-12-31T00:00:00Z"), Long.MAX_VALUE);

  private enum Look {
    ABOVE,
    SWEEP,
    SLICE,
    CLOCK
  }

  private final Deque<ScanBound> trail = new ArrayDeque<>();
  private final Duration longestLimit;
  private @Nullable ScanBound recent;
  private Look look = Look.SWEEP;
  private boolean drained = true;

  /** Where a sweep or a slice that found more goes on; null at its beginning. */
  private @Nullable ScanBound reached;

  private long sweepAnewAt;
  private boolean sweptAPart;
  private boolean started;
  private boolean clockUnknown;
  private long nextSweepAt;
  private long sweepAllowedAt;
  private long lastCost;

  // sweeping in slices
  private boolean sliced;
  private @Nullable ScanBound sliceTop;
  private boolean lookedBelow;
  private boolean slicedBefore;
  private long slicedAt;
  private Duration width = FIRST_SLICE;
  private Duration sliceLimit = SLICE_LIMIT;
  private long passCost;

  QueueScan(Duration networkTimeout) {
    this.longestLimit = min(LONGEST_LIMIT, networkTimeout.dividedBy(2));
  }

  /** A part of the queue to look at, and for how long. */
  record Plan(Range range, @Nullable Duration timeLimit) {}

  /**
   * Returns where to look now.
   *
   * @param inReserve another subscriber is on watch, and looks through what is dear to look through
   */
  Plan next(long now, boolean inReserve) {
    boolean due = !started || now - nextSweepAt >= 0 || (drained && now - sweepAllowedAt >= 0);
    boolean sweep =
        due && !(sliced && (lookedBelow || (inReserve && slicedBefore && now - slicedAt < RARELY)));
    ScanBound bound = bound();
    lookedBelow = false;
    if (clockUnknown) {
      look = Look.CLOCK;
      return new Plan(new Range(NOWHERE, null), null);
    }
    if (!sweep) {
      look = Look.ABOVE;
      return new Plan(new Range(bound, null), null);
    }
    if (!sliced) {
      look = Look.SWEEP;
      if (now - sweepAnewAt >= 0) {
        reached = null;
      }
      sweptAPart = reached != null;
      return new Plan(new Range(reached, null), min(SWEEP_LIMIT, longestLimit));
    }
    look = Look.SLICE;
    lookedBelow = true; // so that the next claim looks above the bound
    slicedBefore = true;
    slicedAt = now;
    if (sliceTop == null) {
      sliceTop = bound;
      passCost = 0;
    }
    return new Plan(
        new Range(later(sliceBottom(), reached), sliceTop), min(sliceLimit, longestLimit));
  }

  private static @Nullable ScanBound later(@Nullable ScanBound a, @Nullable ScanBound b) {
    if (a == null || b == null) {
      return a == null ? b : a;
    }
    return a.compareTo(b) >= 0 ? a : b;
  }

  private static Duration min(Duration a, Duration b) {
    return a.compareTo(b) <= 0 ? a : b;
  }

  private @Nullable ScanBound sliceBottom() {
    if (sliceTop == null || width.compareTo(WIDEST_SLICE) >= 0) {
      return null;
    }
    return new ScanBound(sliceTop.availableAt().minus(width), Long.MAX_VALUE);
  }

  /** The place above which claims look, or null. */
  private @Nullable ScanBound bound() {
    return later(trail.size() < TRAIL ? null : trail.peekFirst(), recent);
  }

  /** Learns from what the claim gave. */
  void claimed(ClaimResult result, long sentAt, long now) {
    boolean full = result.full();
    long cost = now - sentAt;
    List<ClaimedRow> rows = result.rows();
    ScanBound last = rows.isEmpty() ? null : place(rows.get(rows.size() - 1));
    switch (look) {
      case CLOCK -> clockUnknown = false;
      case ABOVE -> drained = !full;
      case SWEEP -> {
        drained = !full;
        started = true;
        if (sweptAPart) {
          sweepAllowedAt = now;
          nextSweepAt = now + SWEEP_EVERY;
        } else {
          pauseSweeps(result.rows(), usualCost(cost), now);
          sweepAnewAt = now + Math.max(SWEEP_EVERY, cost * SLICE_SHARE);
        }
        reached = full ? later(reached, last) : null;
      }
      case SLICE -> {
        reached = full ? later(reached, last) : reached;
        sliceDone(full, cost, now);
      }
      default -> throw new AssertionError(look);
    }
    if (look == Look.CLOCK || (!full && look != Look.SLICE)) {
      recent = later(recent, new ScanBound(result.at().minus(RECENT), Long.MAX_VALUE));
    }
    if (look != Look.SLICE && last != null) {
      advance(last);
    }
  }

  private static ScanBound place(ClaimedRow row) {
    return new ScanBound(row.message().availableAt(), row.lease().id());
  }

  private void pauseSweeps(List<ClaimedRow> rows, long cost, long now) {
    boolean pause = rows.isEmpty() ? cost > CHEAP : cost > 4 * CHEAP && foundNothingBelow(rows);
    long wait = pause ? Math.min(LONGEST_PAUSE, cost * COST_SHARE) : 0;
    sweepAllowedAt = now + wait;
    nextSweepAt = now + Math.max(SWEEP_EVERY, wait);
  }

  /** At most twice the last: a single slow sweep tells of the machine, not of the queue. */
  private long usualCost(long cost) {
    long usual = Math.min(cost, 2 * lastCost);
    lastCost = cost;
    return usual;
  }

  private boolean foundNothingBelow(List<ClaimedRow> rows) {
    ScanBound bound = bound();
    return bound == null
        || rows.stream().map(QueueScan::place).noneMatch(place -> place.compareTo(bound) <= 0);
  }

  private void sliceDone(boolean full, long cost, long now) {
    passCost += cost;
    sweepAllowedAt = now + (full ? 0 : cost * SLICE_SHARE);
    nextSweepAt = sweepAllowedAt;
    if (full) {
      return; // there is more in it
    }
    ScanBound bottom = sliceBottom();
    lower(bottom);
    if (bottom == null) { // the pass is complete
      width = FIRST_SLICE;
      sliced = passCost > SWEEP_LIMIT.toNanos() / 4;
      sweepAllowedAt = Math.max(sweepAllowedAt, now + SWEEP_EVERY);
      nextSweepAt = sweepAllowedAt;
      return;
    }
    sliceLimit = SLICE_LIMIT;
    if (cost < SLICE_LIMIT.toNanos() / 4) {
      width = min(width.multipliedBy(cost < SLICE_LIMIT.toNanos() / 16 ? 8 : 2), WIDEST_SLICE);
    }
  }

  /** Goes on below; what is left to pass of a slice that was narrowed comes next. */
  private void lower(@Nullable ScanBound bottom) {
    sliceTop = bottom;
    if (bottom == null || (reached != null && bottom.compareTo(reached) <= 0)) {
      reached = null;
    }
  }

  /**
   * Learns that the server ended the claim for its time limit.
   *
   * @return true if that was to be expected, false if it is a failure like any other
   */
  boolean timedOut(long sentAt, long now) {
    long cost = now - sentAt;
    switch (look) {
      case SWEEP -> {
        started = true;
        sliced = true;
        sliceTop = null;
        reached = null;
        clockUnknown = true; // what lies above the bound may be as much
        sweepAllowedAt = now + cost * SLICE_SHARE;
        nextSweepAt = sweepAllowedAt;
        return true;
      }
      case SLICE -> {
        passCost += cost;
        sweepAllowedAt = now + cost * SLICE_SHARE;
        nextSweepAt = sweepAllowedAt;
        narrow();
        return true;
      }
      default -> {
        clockUnknown = look == Look.ABOVE;
        return false;
      }
    }
  }

  private void narrow() {
    if (width.compareTo(NARROWEST_SLICE) > 0) {
      Duration narrower = width.compareTo(WIDEST_SLICE) >= 0 ? Duration.ofDays(1) : width;
      width = narrower.dividedBy(8);
      if (width.compareTo(NARROWEST_SLICE) < 0) {
        width = NARROWEST_SLICE;
      }
    } else if (sliceLimit.compareTo(longestLimit) < 0) {
      sliceLimit = sliceLimit.multipliedBy(4); // very many rows of one instant
    } else {
      lower(sliceBottom()); // not in this pass
      sliceLimit = SLICE_LIMIT;
    }
  }

  /** Tells whether the queue is looked through in slices. */
  boolean sliced() {
    return sliced;
  }

  private void advance(ScanBound place) {
    ScanBound last = trail.peekLast();
    trail.addLast(last == null || place.compareTo(last) >= 0 ? place : last);
    if (trail.size() > TRAIL) {
      trail.removeFirst();
    }
  }

  /** Tells whether the last claim left out a part of the queue. */
  boolean lookedAtAPart() {
    return look != Look.SWEEP || sweptAPart;
  }

  /** Returns how long until a sweep is allowed, or what is to be looked at before it. */
  long untilSweep(long now) {
    return clockUnknown || lookedBelow ? 0 : Math.max(0, sweepAllowedAt - now);
  }
}
