package dev.outbox4j.internal.order;

import dev.outbox4j.OutboxStoreException;
import dev.outbox4j.internal.state.Shared;
import dev.outbox4j.spi.BucketStore;
import java.util.concurrent.TimeUnit;
import java.util.function.LongSupplier;

/**
 * Up to which id handlers may have begun, as the store knows it: whoever takes over from a killed
 * owner counts deliveries up to there. Confined to the fetcher.
 */
final class Reservation {
  private static final long FIRST_STEP = 20_000;
  private static final long LONGEST_STEP = 2_000_000;
  private static final long SECOND = TimeUnit.SECONDS.toNanos(1);

  private final String queue;
  private final String owner;
  private final BucketStore store;
  private final Shared shared;
  private final LongSupplier clock;
  private long upTo;
  private long extendedAt;
  private long step = FIRST_STEP;

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
    upTo = 0;
  }

  /** Makes sure of an id, before its row is handled. */
  void cover(long id) {
    if (id <= upTo) {
      return;
    }
    long now = clock.getAsLong();
    step = now - extendedAt < SECOND ? Math.min(LONGEST_STEP, 2 * step) : FIRST_STEP;
    long extended = id + step;
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
  }
}
