package dev.outbox4j.internal.claim;

import dev.outbox4j.internal.settings.SubscriberSettings.Limits;
import java.util.concurrent.TimeUnit;

/**
 * What bounds how many rows of one queue are held at once: the limit of this process, and slots
 * that all processes share. Of a limited queue never more rows are held than there are workers,
 * since one that only waits would keep a slot from other processes. Confined to the fetcher.
 */
final class QueueLimit {
  /** Until it is looked again for slots that other processes have freed. */
  static final long LOOK_AGAIN = TimeUnit.MILLISECONDS.toNanos(250);

  /** How long it may take to notice slots that somebody has deleted. */
  private static final long OPEN_AGAIN = TimeUnit.SECONDS.toNanos(10);

  private final boolean limited;
  private final int most;
  private final int slots;
  private boolean full;
  private long fullSince;
  private boolean outOfSlots;
  private boolean opened;
  private long openedAt;
  private long until;

  private QueueLimit(boolean limited, int most, int slots) {
    this.limited = limited;
    this.most = most;
    this.slots = slots;
  }

  static QueueLimit of(String queue, Limits limits, int workers) {
    return new QueueLimit(
        limits.queues().contains(queue),
        Math.min(workers, limits.ofProcess().getOrDefault(queue, workers)),
        limits.ofAll().getOrDefault(queue, 0));
  }

  boolean isLimited() {
    return limited;
  }

  /** Returns how many slots there are for all processes; 0 if there is no such limit. */
  int slots() {
    return slots;
  }

  /** Returns how many rows may be claimed if so many are held. */
  int room(int held, long now) {
    if (held >= most && !full) {
      fullSince = now;
    }
    full = held >= most;
    return full || isOutOfSlots(now) ? 0 : most - held;
  }

  /** Tells whether nothing is claimed now, but if a row was settled since. */
  boolean waits(long now) {
    return full || isOutOfSlots(now);
  }

  private boolean isOutOfSlots(long now) {
    return outOfSlots && now - until < 0;
  }

  /** Tells whether this process has held all it may for so long that others should be on watch. */
  boolean isFullForLong(long now) {
    return full && now - fullSince >= RoomWait.PASS_AFTER;
  }

  /** Returns how long until it is looked again, if nothing is settled. */
  long untilLook(long now) {
    if (!full) {
      return Math.max(0, until - now);
    }
    return isFullForLong(now) ? RoomWait.LONGEST : fullSince + RoomWait.PASS_AFTER - now;
  }

  /** Learns whether a claim found all slots taken. */
  void claimed(boolean none, long now) {
    outOfSlots = none;
    until = now + LOOK_AGAIN;
  }

  /** Rows were settled. */
  void settled() {
    full = false;
    outOfSlots = false;
  }

  /** Tells, once in a while, whether slots may be missing, of a queue that has run out of them. */
  boolean mayBeMissing(long now) {
    if (!outOfSlots || (opened && now - openedAt < OPEN_AGAIN)) {
      return false;
    }
    opened = true;
    openedAt = now;
    return true;
  }
}
