package dev.outbox4j.internal;

import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicInteger;

/** All rows this subscriber holds leases on. Thread-safe. */
final class InFlightRegistry {
  private final Set<LeaseBatch> batches = ConcurrentHashMap.newKeySet();
  private final AtomicInteger rows = new AtomicInteger();

  void add(LeaseBatch batch) {
    batches.add(batch);
    rows.addAndGet(batch.size());
  }

  /**
   * Ends a row's time in the engine. A second time changes nothing: counted twice, it would let its
   * batch be forgotten, and with it the leases of the batch's other rows.
   */
  void settle(InFlight delivery) {
    if (!delivery.settle()) {
      return;
    }
    rows.decrementAndGet();
    if (delivery.batch().settled()) {
      batches.remove(delivery.batch());
    }
  }

  /** Discounts a row that stays leased but is not to stand in the way of further claims. */
  void parked() {
    rows.decrementAndGet();
  }

  /** Counts a parked row again. */
  void unparked() {
    rows.incrementAndGet();
  }

  Iterable<LeaseBatch> batches() {
    return batches;
  }

  int rows() {
    return rows.get();
  }
}
