package dev.outbox4j.internal.claim;

import dev.outbox4j.internal.Backoff;
import dev.outbox4j.internal.Durations;
import dev.outbox4j.internal.settings.SubscriberSettings;
import dev.outbox4j.spi.ClaimResult;
import dev.outbox4j.spi.LookAhead;
import java.time.Duration;

/** What the fetcher knows of one queue. Confined to the fetcher. */
final class QueueLane {
  private static final long NONE = Long.MAX_VALUE;

  private final String queue;
  private final QueueScan scan;
  private final QueueWatch watch;
  private final QueueLimit limits;
  private final Backoff backoff = new Backoff();
  private long dueAt;
  private boolean dueKnown;
  private int limit = Integer.MAX_VALUE;
  private int asked = Integer.MAX_VALUE;
  private boolean failing;
  private long retryAt;

  QueueLane(String queue, SubscriberSettings settings) {
    this.queue = queue;
    this.scan = new QueueScan(settings.store().networkTimeout());
    this.watch = new QueueWatch(settings.claiming());
    this.limits = QueueLimit.of(queue, settings.claiming().limits(), settings.work().workers());
  }

  String queue() {
    return queue;
  }

  QueueScan scan() {
    return scan;
  }

  QueueWatch watch() {
    return watch;
  }

  QueueLimit limits() {
    return limits;
  }

  /** The last claim failed; the next are smaller, if it may be by its size. */
  void failed(boolean maybeBySize, long now) {
    watch.failed(now);
    failing = true;
    retryAt = now + backoff.nextNanos();
    if (maybeBySize) {
      limit = Math.max(1, asked / 2);
    }
  }

  boolean isFailing() {
    return failing;
  }

  /** Tells whether a claim may be tried, or the last one has failed only just now. */
  boolean mayClaim(long now) {
    return !failing || now - retryAt >= 0;
  }

  /**
   * Tells whether it waits for the next try, or for its limit, and says nothing of other queues.
   */
  boolean awaitsTry() {
    return failing || limits.waits();
  }

  /** Returns how long until that try. */
  long untilTry(long now) {
    long retry = failing ? Math.max(0, retryAt - now) : 0;
    return limits.waits() ? Math.max(retry, limits.untilLook(now)) : retry;
  }

  /** Returns how many rows the next claim asks for, of so many that there is room for. */
  int limited(int rows) {
    asked = Math.min(rows, limit);
    return asked;
  }

  /**
   * Learns from a claim.
   *
   * @param quiet it was not to find out whether rows come
   */
  void claimed(ClaimResult result, boolean quiet, long sentAt, long now) {
    failing = false;
    backoff.reset();
    if (limit < Integer.MAX_VALUE / 2) {
      limit += Math.max(1, limit / 8); // slowly: what was too large most likely still is
    }
    limits.claimed(result.rows().size(), result.outOfSlots(), now);
    if (!result.outOfSlots() || !result.rows().isEmpty()) { // else it has not looked
      scan.claimed(result, sentAt, now);
    }
    LookAhead ahead = result.lookAhead();
    if (!quiet || !result.rows().isEmpty()) {
      watch.claimed(result.rows().size(), ahead, now);
    }
    if (ahead == null) {
      return;
    }
    Duration next = ahead.nextDueIn();
    dueKnown = next != null;
    if (next != null) {
      dueAt = now + Durations.saturatedNanos(next);
    }
  }

  /** Notes a row that this subscriber itself made due later. */
  void dueAt(long at) {
    if (!dueKnown || at - dueAt < 0) {
      dueKnown = true;
      dueAt = at;
    }
  }

  /** Returns how long until a row is known to be due; what is due already is told once. */
  long untilDue(long now) {
    if (!dueKnown) {
      return NONE;
    }
    long left = dueAt - now;
    if (left <= 0) {
      dueKnown = false; // due since, or another subscriber's by now: the next claim tells
      return 0;
    }
    return left;
  }
}
