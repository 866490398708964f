package dev.outbox4j.internal.claim;

import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.function.LongSupplier;

/**
 * The wait for room. Publishers must not count on a subscriber that has none, so where it lasts,
 * another one takes the watch. Confined to the fetcher.
 */
final class RoomWait {
  /** Until it is looked again, whether or not somebody has said that there is room. */
  static final long LONGEST = TimeUnit.MILLISECONDS.toNanos(500);

  /** How long there is no room until another subscriber takes the watch. */
  static final long PASS_AFTER = TimeUnit.MILLISECONDS.toNanos(5);

  private final List<QueueLane> lanes;
  private final WatchHandOver handOver;
  private final LongSupplier clock;
  private boolean lasts;
  private long since;

  RoomWait(List<QueueLane> lanes, WatchHandOver handOver, LongSupplier clock) {
    this.lanes = lanes;
    this.handOver = handOver;
    this.clock = clock;
  }

  /** There is room. */
  void end() {
    lasts = false;
  }

  /** There is no room: returns how long to wait for some. */
  long next() {
    long now = clock.getAsLong();
    if (!lasts) {
      lasts = true;
      since = now;
    }
    List<QueueLane> counting = lanes.stream().filter(lane -> lane.watch().isCountedOn()).toList();
    if (counting.isEmpty()) {
      return LONGEST;
    }
    long left = since + PASS_AFTER - now;
    if (left > 0) {
      return left;
    }
    counting.forEach(lane -> handOver.pass(lane.queue(), lane.watch()));
    return LONGEST;
  }
}
