package dev.outbox4j.internal.state;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ConcurrentLinkedQueue;
import org.jspecify.annotations.Nullable;

/**
 * Claimed rows that no worker has begun, oldest claim first. Thread-safe, without locks: workers
 * take rows one by one from a shared batch, so a slow handler holds up no other row.
 */
public final class Buffer {
  private final ConcurrentLinkedQueue<ClaimedBatch> batches = new ConcurrentLinkedQueue<>();
  private volatile boolean closed;

  public void add(ClaimedBatch batch) {
    batches.add(batch);
  }

  /** Takes a row, or null if there is none or the buffer is closed. */
  public @Nullable HeldRow poll() {
    while (!closed) {
      ClaimedBatch head = batches.peek();
      if (head == null) {
        return null;
      }
      HeldRow row = head.next();
      if (row != null) {
        return row;
      }
      batches.remove(head);
    }
    return null;
  }

  public boolean isEmpty() {
    return size() == 0;
  }

  public int size() {
    if (closed) {
      return 0;
    }
    int size = 0;
    for (ClaimedBatch batch : batches) {
      size += batch.waiting();
    }
    return size;
  }

  /** Gives out nothing from now on and returns the rows that are left. */
  public List<HeldRow> close() {
    closed = true;
    List<HeldRow> left = new ArrayList<>();
    for (ClaimedBatch batch = batches.poll(); batch != null; batch = batches.poll()) {
      for (HeldRow row = batch.next(); row != null; row = batch.next()) {
        left.add(row);
      }
    }
    return left;
  }
}
