package dev.outbox4j.internal.order;

import dev.outbox4j.OutboxStoreException;
import dev.outbox4j.internal.state.Shared;
import dev.outbox4j.spi.BucketStore;
import java.util.concurrent.TimeUnit;
import java.util.function.LongSupplier;

/**
 * Up to which id handlers may have begun, as the store knows it: whoever takes over from a killed
 * owner counts deliveries up to there, a few at a time. So it is no further than what is read in
 * about a second. Confined to the fetcher.
 */
final class Reservation {
  private static final long SHORTEST_STEP = 1_000;
  private static final long LONGEST_STEP = 2_000_000;
  private static final int MOST_GROWTH = 4;
  private static final long SECOND = TimeUnit.SECONDS.toNanos(1);

  private final String queue;
  private final String owner;
  private final BucketStore store;
  private final Shared shared;
  private final LongSupplier clock;
  private long upTo;
  private long extendedAt;
  private long step = SHORTEST_STEP;
  private boolean isKnown;

  Reservation(String queue, String owner, BucketStore store, Shared shared, LongSupplier clock) {
    this.queue = queue;
    this.owner = owner;
    this.store = store;
    this.shared = shared;
    this.clock = clock;
    this.extendedAt = clock.getAsLong() - SECOND;
  }

  /** The store may have forgotten it. */
  void forget() {
    isKnown = false;
  }

  /** Makes sure of an id, before its row is handled. */
  void cover(long id) {
    if (id <= upTo && isKnown) {
      return;
    }
    long now = clock.getAsLong();
    long next = nextStep(now);
    long extended = id + next;
    if (!shared.connections().spend(() -> store.reserve(queue, owner, extended))) {
      throw new OutboxStoreException(
          "The lease of queue '"
              + queue
              + "' is over, or its owner was removed; it is joined again",
          OutboxStoreException.Fault.TRANSIENT,
          false,
          null);
    }
    upTo = extended;
    extendedAt = now;
    step = next;
    isKnown = true;
  }

  /** The last step was used up since then, if it is known; the next one is to last for a second. */
  private long nextStep(long now) {
    double perSecond = (double) step * SECOND / Math.max(1, now - extendedAt);
    double most = Math.min(LONGEST_STEP, (double) step * (isKnown ? MOST_GROWTH : 1));
    return (long) Math.max(SHORTEST_STEP, Math.min(most, perSecond));
  }
}
