package dev.outbox4j.internal;

import dev.outbox4j.spi.ClaimRequest.QueueScan;
import dev.outbox4j.spi.ClaimedRow;
import dev.outbox4j.spi.ScanBound;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;

/**
 * Where the next claim looks: which queue first, and above which bound. Confined to the fetcher.
 *
 * <p>The bound trails what was claimed by a few claims; it only spares the scan the dead index
 * entries at the head of a queue. Rows can become claimable below it, because their transaction
 * committed late, their lease ran out or they were released. So a <em>sweep</em>, a claim without
 * the bound, runs whenever the queue seems drained and about once a second, less often only while
 * it costs much.
 */
final class QueueScans {
  private static final int TRAIL = 8;
  private static final long SWEEP_EVERY = TimeUnit.SECONDS.toNanos(1);
  private static final long CHEAP = TimeUnit.MILLISECONDS.toNanos(5);
  private static final long LONGEST_PAUSE = TimeUnit.SECONDS.toNanos(10);

  /** A sweep that finds nothing may take this share of the time: one part in so many. */
  private static final int COST_SHARE = 20;

  private final Map<String, Deque<ScanBound>> trails = new LinkedHashMap<>();
  private final List<String> order;
  private int first;
  private boolean drained = true;
  private boolean sweeping;
  private long nextSweepAt;
  private long sweepAllowedAt;
  private boolean started;
  private long lastCost;

  QueueScans(List<String> queues) {
    this.order = List.copyOf(queues);
    queues.forEach(queue -> trails.put(queue, new ArrayDeque<>()));
  }

  /** Returns where to look now; each call begins with the next queue in turn. */
  List<QueueScan> next(long now) {
    sweeping = !started || now - nextSweepAt >= 0 || (drained && now - sweepAllowedAt >= 0);
    List<QueueScan> scans = new ArrayList<>(order.size());
    for (int i = 0; i < order.size(); i++) {
      String queue = order.get((first + i) % order.size());
      scans.add(new QueueScan(queue, sweeping ? null : bound(queue)));
    }
    first = (first + 1) % order.size();
    return scans;
  }

  private @Nullable ScanBound bound(String queue) {
    Deque<ScanBound> trail = trails.get(queue);
    return trail == null || trail.size() < TRAIL ? null : trail.peekFirst();
  }

  /** Learns from what the claim gave. */
  void claimed(List<ClaimedRow> rows, boolean full, long sentAt, long now) {
    drained = !full;
    if (sweeping) {
      started = true;
      long cost = usualCost(now - sentAt);
      boolean pause = rows.isEmpty() ? cost > CHEAP : cost > 4 * CHEAP && foundNothingBelow(rows);
      long wait = pause ? Math.min(LONGEST_PAUSE, cost * COST_SHARE) : 0;
      sweepAllowedAt = now + wait;
      nextSweepAt = now + Math.max(SWEEP_EVERY, wait);
    }
    Map<String, ScanBound> greatest = new LinkedHashMap<>();
    for (ClaimedRow row : rows) {
      ScanBound place = new ScanBound(row.availableAt(), row.lease().id());
      greatest.merge(row.lease().queue(), place, (a, b) -> a.compareTo(b) >= 0 ? a : b);
    }
    greatest.forEach(this::advance);
  }

  /** At most twice the last: a single slow sweep tells of the machine, not of the queue. */
  private long usualCost(long cost) {
    long usual = Math.min(cost, 2 * lastCost);
    lastCost = cost;
    return usual;
  }

  private boolean foundNothingBelow(List<ClaimedRow> rows) {
    for (ClaimedRow row : rows) {
      ScanBound bound = bound(row.lease().queue());
      if (bound != null
          && new ScanBound(row.availableAt(), row.lease().id()).compareTo(bound) <= 0) {
        return false;
      }
    }
    return true;
  }

  private void advance(String queue, ScanBound place) {
    Deque<ScanBound> trail = trails.get(queue);
    if (trail == null) {
      return;
    }
    ScanBound last = trail.peekLast();
    trail.addLast(last == null || place.compareTo(last) >= 0 ? place : last);
    if (trail.size() > TRAIL) {
      trail.removeFirst();
    }
  }

  /** Tells whether the last claim left out what lies below the bound. */
  boolean lookedAboveOnly() {
    return !sweeping;
  }

  /** Returns how long until a sweep is allowed; zero if it is. */
  long untilSweep(long now) {
    return Math.max(0, sweepAllowedAt - now);
  }
}
