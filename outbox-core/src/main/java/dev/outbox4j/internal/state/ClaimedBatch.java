package dev.outbox4j.internal.state;

import dev.outbox4j.spi.ClaimedRow;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReferenceArray;
import org.jspecify.annotations.Nullable;

/**
 * The rows of one claim: they share a lease, are dispatched from here and are renewed together.
 * Thread-safe.
 */
public final class ClaimedBatch {
  private final AtomicReferenceArray<@Nullable HeldRow> rows;
  private final AtomicInteger dispatched = new AtomicInteger();
  private final AtomicInteger unsettled;
  private final String queue;
  private final long claimedAt;
  private final long bytes;
  private final Lease lease;
  private final @Nullable RowFollower follower;
  private @Nullable HeldRows holder;

  /** Rows that were leased together, at the earliest at an instant. */
  public ClaimedBatch(String queue, List<ClaimedRow> claimed, long claimedAt, long leaseNanos) {
    this(queue, claimed, claimedAt, new Lease(claimedAt, leaseNanos), null);
  }

  /** Rows under a lease that is not theirs alone; who follows them is told how far they come. */
  public ClaimedBatch(
      String queue,
      List<ClaimedRow> claimed,
      long claimedAt,
      Lease lease,
      @Nullable RowFollower follower) {
    this.queue = queue;
    this.claimedAt = claimedAt;
    this.lease = lease;
    this.follower = follower;
    this.unsettled = new AtomicInteger(claimed.size());
    this.rows = new AtomicReferenceArray<>(claimed.size());
    long sum = 0;
    for (int i = 0; i < claimed.size(); i++) {
      HeldRow row = new HeldRow(claimed.get(i), this, i);
      rows.set(i, row);
      sum += row.bytes();
    }
    this.bytes = sum;
  }

  /** Written before the rows are handed on. */
  void heldBy(HeldRows rows) {
    holder = rows;
  }

  boolean stopping() {
    HeldRows rows = holder;
    return rows != null && rows.stopping();
  }

  /** Takes the next row that no worker has, or null if all are taken. */
  @Nullable HeldRow next() {
    while (dispatched.get() < rows.length()) {
      int index = dispatched.getAndIncrement();
      if (index >= rows.length()) {
        return null;
      }
      HeldRow row = rows.get(index);
      if (row != null) {
        return row;
      }
    }
    return null;
  }

  int waiting() {
    return Math.max(0, rows.length() - dispatched.get());
  }

  public int size() {
    return rows.length();
  }

  public @Nullable HeldRow at(int index) {
    return rows.get(index);
  }

  public String queue() {
    return queue;
  }

  /** Returns the first row that is not settled, or null if all are. */
  public @Nullable HeldRow firstLeft() {
    for (int i = 0; i < size(); i++) {
      HeldRow row = at(i);
      if (row != null) {
        return row;
      }
    }
    return null;
  }

  public long claimedAt() {
    return claimedAt;
  }

  /** Returns the payload bytes that the claim brought. */
  public long bytes() {
    return bytes;
  }

  public Lease lease() {
    return lease;
  }

  @Nullable RowFollower follower() {
    return follower;
  }

  /** Lets go of a row, payload and all; false if that was done before. */
  boolean settle(int index) {
    if (rows.getAndSet(index, null) == null) {
      return false;
    }
    unsettled.decrementAndGet();
    return true;
  }

  boolean settled() {
    return unsettled.get() == 0;
  }
}
