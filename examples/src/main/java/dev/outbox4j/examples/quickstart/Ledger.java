package dev.outbox4j.examples.quickstart;

import java.util.ArrayList;
import java.util.List;
import java.util.Queue;
import java.util.UUID;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * The driver's own books: what the service answered to each order. The database is compared with
 * them in the end. Thread-safe.
 */
final class Ledger {
  private static final int SHOWN = 5;

  private final Queue<Entry> entries = new ConcurrentLinkedQueue<>();
  private final Queue<String> unexpected = new ConcurrentLinkedQueue<>();
  private final AtomicInteger unexpectedCount = new AtomicInteger();
  private final AtomicInteger committed = new AtomicInteger();
  private final AtomicInteger rolledBack = new AtomicInteger();

  /** One order with the answer to it. */
  record Entry(UUID orderId, OrderKind kind, boolean committed) {}

  void committed(PlannedOrder order) {
    entries.add(new Entry(order.id(), order.kind(), true));
    committed.incrementAndGet();
  }

  void rolledBack(PlannedOrder order) {
    entries.add(new Entry(order.id(), order.kind(), false));
    rolledBack.incrementAndGet();
  }

  /** An answer that was not planned, or none: whether the order was committed is not known. */
  void unexpected(String what) {
    if (unexpectedCount.incrementAndGet() <= SHOWN) {
      unexpected.add(what);
    }
  }

  List<Entry> entries() {
    return new ArrayList<>(entries);
  }

  int committed() {
    return committed.get();
  }

  int rolledBack() {
    return rolledBack.get();
  }

  int unexpected() {
    return unexpectedCount.get();
  }

  int answered() {
    return committed() + rolledBack() + unexpected();
  }

  /** The first few unexpected answers. */
  List<String> unexpectedExamples() {
    return List.copyOf(unexpected);
  }
}
