package dev.outbox4j.internal.claim;

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
 * <p>The bound only spares the scan what was claimed before: dead index entries at the head of a
 * queue, and rows under a lease. Among rows that became due lately it trails by a few claims, since
 * there other transactions may still commit; behind a backlog it does not. Rows can become
 * claimable below it, because their transaction committed late, their lease ran out or they were
 * released. So a <em>sweep</em>, a claim without the bound, runs whenever the queue seems drained
 * and about once a second, less often while it costs much and finds nothing. A sweep that finds
 * more than it may take goes on where it ended: rows that were handled since cannot be removed
 * while an old transaction is open, and each claim would pass all of them again.
 *
 * <p>No sweep may keep claims above the bound waiting: the server ends it after {@link
 * #SWEEP_LIMIT}. Where that happens, the queue is looked through in slices from the bound
 * downwards, with claims above the bound in between. The bound stays where it is, lest a backlog be
 * left to slices, unless what lies above it takes too long as well. One {@link SliceWalk} goes
 * through all there is. Another one looks again and again at the youngest of it, where most that
 * commits late turns up.
 */
final class QueueScan {
  static final Duration SWEEP_LIMIT = Duration.ofSeconds(1);

  private static final int TRAIL = 8;

  private static final long SWEEP_EVERY = TimeUnit.SECONDS.toNanos(1);
  private static final long CHEAP = TimeUnit.MILLISECONDS.toNanos(5);
  private static final long LONGEST_PAUSE = TimeUnit.SECONDS.toNanos(20);

  /** A sweep that finds nothing may take this share of the time: one part in so many. */
  private static final int COST_SHARE = 20;

  /** Who is in reserve takes a slice now and then: who is on watch may have died. */
  private static final long RARELY = TimeUnit.SECONDS.toNanos(5);

  /** A sweep that was ended, or found something, may take more. */
  private static final int LARGER_SHARE = 8;

  private static final Duration SLICE_LIMIT = Duration.ofMillis(250);

  /** Short, so that a slice that holds too much is soon followed by a narrower one. */
  private static final Duration YOUNGEST_LIMIT = Duration.ofMillis(100);

  /** What became due before that may be left to sweeps once a claim has passed it. */
  private static final Duration RECENT = Duration.ofSeconds(10);

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
  private final SliceWalk all;
  private final SliceWalk youngest;
  private @Nullable ScanBound recent;
  private Look look = Look.SWEEP;
  private boolean drained = true;

  /** Where a sweep that found more goes on; null at its beginning. */
  private @Nullable ScanBound reached;

  private long sweepAnewAt;
  private boolean sweptAPart;
  private boolean started;
  private boolean clockUnknown;

  /** Becomes the bound if a claim above the present one takes too long; null if that is known. */
  private @Nullable ScanBound fallback;

  private long nextSweepAt;
  private long sweepAllowedAt;
  private long lastCost;

  // in slices
  private boolean sliced;
  private SliceWalk walk;
  private boolean lookedBelow;
  private boolean slicedBefore;
  private long slicedAt;

  QueueScan(Duration networkTimeout) {
    this.longestLimit = min(LONGEST_LIMIT, networkTimeout.dividedBy(2));
    this.all = new SliceWalk(null, SWEEP_EVERY, SLICE_LIMIT, longestLimit);
    this.youngest =
        new SliceWalk(
            SliceWalk.FIRST_SLICE,
            SWEEP_EVERY,
            min(YOUNGEST_LIMIT, longestLimit),
            min(YOUNGEST_LIMIT, longestLimit));
    this.walk = youngest;
  }

  /**
   * A part of the queue to look at, and for how long.
   *
   * @param quiet says nothing to publishers: it comes between two claims of a backlog, and whether
   *     it finds rows tells nothing of how many come
   */
  record Plan(Range range, @Nullable Duration timeLimit, boolean quiet) {
    Plan(Range range, @Nullable Duration timeLimit) {
      this(range, timeLimit, false);
    }
  }

  /**
   * Returns where to look now.
   *
   * @param inReserve another subscriber is on watch, and looks through what is dear to look through
   */
  Plan next(long now, boolean inReserve) {
    boolean below = sliced ? sliceIsDue(now, inReserve) : sweepIsDue(now);
    ScanBound bound = bound();
    lookedBelow = false;
    if (clockUnknown) {
      look = Look.CLOCK;
      return new Plan(new Range(NOWHERE, null), null, true);
    }
    if (fallback != null) {
      look = Look.ABOVE;
      return new Plan(new Range(bound, null), min(SWEEP_LIMIT, longestLimit), true);
    }
    if (!below) {
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
    walk = nextWalk();
    return walk.next(bound);
  }

  private boolean sweepIsDue(long now) {
    return !started || now - nextSweepAt >= 0 || (drained && now - sweepAllowedAt >= 0);
  }

  private boolean sliceIsDue(long now, boolean inReserve) {
    boolean left = inReserve && slicedBefore && now - slicedAt < RARELY;
    return !lookedBelow && !left && now - nextWalk().allowedAt() >= 0;
  }

  /** The one that waits longer. */
  private SliceWalk nextWalk() {
    return youngest.allowedAt() - all.allowedAt() <= 0 ? youngest : all;
  }

  static @Nullable ScanBound later(@Nullable ScanBound a, @Nullable ScanBound b) {
    if (a == null || b == null) {
      return a == null ? b : a;
    }
    return a.compareTo(b) >= 0 ? a : b;
  }

  static Duration min(Duration a, Duration b) {
    return a.compareTo(b) <= 0 ? a : b;
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
    ScanBound last =
        later(rows.isEmpty() ? null : place(rows.get(rows.size() - 1)), result.refusedUpTo());
    ScanBound aWhileAgo = new ScanBound(result.at().minus(RECENT), Long.MAX_VALUE);
    switch (look) {
      case CLOCK -> {
        clockUnknown = false;
        if (bound() == null) {
          recent = aWhileAgo;
        } else {
          fallback = aWhileAgo;
        }
      }
      case ABOVE -> {
        drained = !full;
        fallback = null;
      }
      case SWEEP -> {
        drained = !full;
        started = true;
        if (sweptAPart) {
          sweepAllowedAt = now;
          nextSweepAt = now + SWEEP_EVERY;
        } else {
          pauseSweeps(result.rows(), usualCost(cost), now);
          sweepAnewAt = now + Math.max(SWEEP_EVERY, cost * LARGER_SHARE);
        }
        reached = full ? later(reached, last) : null;
      }
      case SLICE -> {
        if (full) {
          walk.found(last, cost, now);
        } else {
          slicePassed(cost, now);
        }
      }
      default -> throw new AssertionError(look);
    }
    if (!full && look != Look.SLICE && look != Look.CLOCK) {
      recent = later(recent, aWhileAgo);
    }
    if (look != Look.SLICE && last != null) {
      advance(last);
      recent = later(recent, last.compareTo(aWhileAgo) <= 0 ? last : aWhileAgo);
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

  private void slicePassed(long cost, long now) {
    long total = walk.passed(cost, now);
    if (walk == all && total >= 0 && total <= SWEEP_LIMIT.toNanos() / 4) {
      sliced = false;
      sweepAllowedAt = walk.allowedAt();
      nextSweepAt = sweepAllowedAt;
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
        reached = null;
        clockUnknown = true; // what lies above the bound may be as much
        youngest.restart(now);
        all.restart(now + cost * LARGER_SHARE);
        return true;
      }
      case SLICE -> {
        walk.timedOut(cost, now);
        return true;
      }
      default -> {
        if (look == Look.ABOVE && fallback != null) {
          recent = later(recent, fallback);
          fallback = null;
          return true;
        }
        clockUnknown = true; // also if it was to tell the clock
        return false;
      }
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
    if (clockUnknown || lookedBelow || fallback != null) {
      return 0;
    }
    return Math.max(0, (sliced ? nextWalk().allowedAt() : sweepAllowedAt) - now);
  }
}
