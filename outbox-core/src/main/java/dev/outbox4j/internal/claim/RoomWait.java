package dev.outbox4j.internal.claim;

import dev.outbox4j.internal.state.EngineHealth;
import dev.outbox4j.internal.state.Shared;
import dev.outbox4j.spi.OutboxStore;
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
  private final OutboxStore store;
  private final String owner;
  private final Shared shared;
  private final ListenState listen;
  private final LongSupplier clock;
  private boolean lasts;
  private long since;

  RoomWait(
      List<QueueLane> lanes,
      OutboxStore store,
      String owner,
      Shared shared,
      ListenState listen,
      LongSupplier clock) {
    this.lanes = lanes;
    this.store = store;
    this.owner = owner;
    this.shared = shared;
    this.listen = listen;
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
    counting.forEach(this::passWatch);
    return LONGEST;
  }

  private void passWatch(QueueLane lane) {
    lane.watch().passed(clock.getAsLong());
    listen.watch(lane.queue(), false);
    try {
      shared.connections().spendOnSaying(() -> store.pass(lane.queue(), owner));
    } catch (RuntimeException failure) { // the others poll, and take the watch when it ends
      shared.health().noted("pass: " + EngineHealth.words(failure));
    }
  }
}
