package dev.outbox4j.internal;

import dev.outbox4j.spi.ClaimedRow;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReferenceArray;
import org.jspecify.annotations.Nullable;

/**
 * The rows of one claim: they share a lease, so they are dispatched from here and renewed together.
 * Thread-safe. Instants are {@link System#nanoTime()}.
 */
final class LeaseBatch {
  private final AtomicReferenceArray<@Nullable InFlight> deliveries;
  private final AtomicInteger dispatched = new AtomicInteger();
  private final AtomicInteger unsettled;
  private final long claimedAt;

  /**
   * Conservative: counted from before the claim was sent, so never later than the server's instant.
   */
  private volatile long expiresAt;

  private volatile long renewAt;

  /** The last try to renew failed. */
  private volatile boolean overdue;

  LeaseBatch(List<ClaimedRow> rows, long claimedAt, long leaseNanos) {
    this.claimedAt = claimedAt;
    this.unsettled = new AtomicInteger(rows.size());
    this.deliveries = new AtomicReferenceArray<>(rows.size());
    for (int i = 0; i < rows.size(); i++) {
      deliveries.set(i, new InFlight(rows.get(i), this, i));
    }
    renewed(claimedAt, leaseNanos);
  }

  void renewed(long sentAt, long leaseNanos) {
    expiresAt = sentAt + leaseNanos;
    renewAt = sentAt + leaseNanos / 2;
    overdue = false;
  }

  void renewLater(long at) {
    renewAt = at;
    overdue = true;
  }

  /** Takes the next row that no worker has, or null if all are taken. */
  @Nullable InFlight next() {
    while (dispatched.get() < deliveries.length()) {
      int index = dispatched.getAndIncrement();
      if (index >= deliveries.length()) {
        return null;
      }
      InFlight delivery = deliveries.get(index);
      if (delivery != null) {
        return delivery;
      }
    }
    return null;
  }

  int waiting() {
    return Math.max(0, deliveries.length() - dispatched.get());
  }

  int size() {
    return deliveries.length();
  }

  @Nullable InFlight at(int index) {
    return deliveries.get(index);
  }

  long claimedAt() {
    return claimedAt;
  }

  long expiresAt() {
    return expiresAt;
  }

  boolean overdue() {
    return overdue;
  }

  long renewAt() {
    return renewAt;
  }

  /** Lets go of a row, payload and all; false if that was done before. */
  boolean settle(int index) {
    if (deliveries.getAndSet(index, null) == null) {
      return false;
    }
    unsettled.decrementAndGet();
    return true;
  }

  boolean settled() {
    return unsettled.get() == 0;
  }
}
