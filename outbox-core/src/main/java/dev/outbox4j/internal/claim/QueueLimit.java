package dev.outbox4j.internal.claim;

import dev.outbox4j.RateLimit;
import dev.outbox4j.internal.Durations;
import dev.outbox4j.internal.settings.SubscriberSettings.Limits;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;

/**
 * What bounds how many rows of one queue are claimed: the limit of this process, its rate, and
 * slots that all processes share. Of a limited queue never more rows are held than there are
 * workers, since one that only waits would keep a slot from other processes. Confined to the
 * fetcher.
 */
final class QueueLimit {
  /** Until it is looked again for slots that other processes have freed. */
  static final long LOOK_AGAIN = TimeUnit.MILLISECONDS.toNanos(250);

  private static final long SHORTEST_LOOK = TimeUnit.MILLISECONDS.toNanos(1);

  /** How long it may take to notice slots that somebody has deleted. */
  private static final long OPEN_AGAIN = TimeUnit.SECONDS.toNanos(10);

  private final boolean limited;
  private final boolean bounded;
  private final int most;
  private final int slots;
  private final @Nullable RateLimit rate;
  private boolean full;
  private long fullSince;
  private long lookIn;
  private boolean outOfSlots;
  private boolean opened;
  private long openedAt;
  private long until;

  private QueueLimit(
      boolean limited, boolean bounded, int most, int slots, @Nullable RateLimit rate) {
    this.limited = limited;
    this.bounded = bounded;
    this.most = most;
    this.slots = slots;
    this.rate = rate;
  }

  static QueueLimit of(String queue, Limits limits, int workers) {
    return new QueueLimit(
        limits.queues().contains(queue),
        limits.ofProcess().containsKey(queue) || limits.ofAll().containsKey(queue),
        Math.min(workers, limits.ofProcess().getOrDefault(queue, workers)),
        limits.ofAll().getOrDefault(queue, 0),
        limits.rates().get(queue));
  }

  boolean isLimited() {
    return limited;
  }

  /** Returns how many slots there are for all processes; 0 if there is no such limit. */
  int slots() {
    return slots;
  }

  /** Returns how many rows may be claimed if so many are held. The rate is foreign code. */
  int room(int held, long now) {
    int room = most - held;
    lookIn = RoomWait.LONGEST;
    if (rate != null && (room > 0 || !bounded)) {
      int available = rate.available();
      room = available == RateLimit.NO_LIMIT && !bounded ? available : Math.min(room, available);
      if (available <= 0) {
        lookIn = Math.max(SHORTEST_LOOK, Durations.saturatedNanos(rate.untilNext()));
      }
    }
    if (room <= 0 && !full) {
      fullSince = now;
    }
    full = room <= 0;
    return full || isOutOfSlots(now) ? 0 : room;
  }

  /** Tells whether the last look found nothing to be claimed; the next one is awaited. */
  boolean waits() {
    return full || outOfSlots;
  }

  private boolean isOutOfSlots(long now) {
    return outOfSlots && now - until < 0;
  }

  /** Tells whether this process may claim nothing for so long that others should be on watch. */
  boolean isFullForLong(long now) {
    return full && now - fullSince >= RoomWait.PASS_AFTER;
  }

  /** Returns how long until it is looked again, if nothing is settled. */
  long untilLook(long now) {
    if (!full) {
      return Math.max(0, until - now);
    }
    return isFullForLong(now) ? lookIn : Math.min(lookIn, fullSince + RoomWait.PASS_AFTER - now);
  }

  /**
   * Learns what a claim has brought.
   *
   * @param none it found all slots taken
   */
  void claimed(int rows, boolean none, long now) {
    outOfSlots = none;
    until = now + LOOK_AGAIN;
    if (rate != null && rows > 0) {
      rate.take(rows);
    }
  }

  /** Rows were settled. */
  void settled() {
    full = false;
    outOfSlots = false;
  }

  /** Tells, once in a while, whether slots may be missing, of a queue that has run out of them. */
  boolean mayBeMissing(long now) {
    return outOfSlots && !(opened && now - openedAt < OPEN_AGAIN);
  }

  /** All slots are there now. */
  void opened(long now) {
    opened = true;
    openedAt = now;
  }
}
