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

  /** Ends a row's time in the engine. */
  void settle(InFlight delivery) {
    if (delivery.settle()) {
      batches.remove(delivery.batch());
    }
    rows.decrementAndGet();
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
