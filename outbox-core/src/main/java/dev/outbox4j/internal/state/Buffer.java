package dev.outbox4j.internal.state;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ConcurrentLinkedDeque;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.atomic.AtomicInteger;
import org.jspecify.annotations.Nullable;

/**
 * Claimed rows that no worker has begun, oldest claim first. Thread-safe, without locks: workers
 * take rows one by one from a shared batch, so a slow handler holds up no other row.
 */
public final class Buffer {
  private final ConcurrentLinkedQueue<ClaimedBatch> batches = new ConcurrentLinkedQueue<>();

  /** By themselves, or taken and put back; the oldest first. */
  private final ConcurrentLinkedDeque<HeldRow> returned = new ConcurrentLinkedDeque<>();

  private final AtomicInteger returnedCount = new AtomicInteger();
  private volatile boolean closed;

  public void add(ClaimedBatch batch) {
    batches.add(batch);
  }

  /**
   * Adds rows by themselves.
   *
   * @return those that nobody takes any more, since the buffer was closed
   */
  public List<HeldRow> add(List<HeldRow> rows) {
    for (HeldRow row : rows) {
      returned.addLast(row);
      returnedCount.incrementAndGet();
    }
    return leftIfClosed();
  }

  /** Takes a row, or null if there is none or the buffer is closed. */
  public @Nullable HeldRow poll() {
    HeldRow again = closed ? null : pollReturned();
    if (again != null) {
      return again;
    }
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

  private @Nullable HeldRow pollReturned() {
    if (returnedCount.get() == 0) {
      return null;
    }
    HeldRow row = returned.pollFirst();
    if (row != null) {
      returnedCount.decrementAndGet();
    }
    return row;
  }

  /**
   * Puts rows back that were taken and not begun, before all others.
   *
   * @param rows the oldest first
   * @return the rows that nobody takes any more, since the buffer was closed meanwhile
   */
  public List<HeldRow> putBack(List<HeldRow> rows) {
    for (int i = rows.size() - 1; i >= 0; i--) {
      returned.addFirst(rows.get(i));
      returnedCount.incrementAndGet();
    }
    return leftIfClosed();
  }

  /** Before or after the one that closed it has looked: each row is left to one of both. */
  private List<HeldRow> leftIfClosed() {
    List<HeldRow> left = new ArrayList<>(0);
    if (closed) {
      takeReturned(left);
    }
    return left;
  }

  private void takeReturned(List<HeldRow> into) {
    for (HeldRow row = pollReturned(); row != null; row = pollReturned()) {
      into.add(row);
    }
  }

  public boolean isEmpty() {
    return size() == 0;
  }

  public int size() {
    if (closed) {
      return 0;
    }
    int size = returnedCount.get();
    for (ClaimedBatch batch : batches) {
      size += batch.waiting();
    }
    return size;
  }

  public boolean isClosed() {
    return closed;
  }

  /** Gives out nothing from now on and returns the rows that are left. */
  public List<HeldRow> close() {
    closed = true;
    List<HeldRow> left = new ArrayList<>();
    takeReturned(left);
    for (ClaimedBatch batch = batches.poll(); batch != null; batch = batches.poll()) {
      for (HeldRow row = batch.next(); row != null; row = batch.next()) {
        left.add(row);
      }
    }
    return left;
  }
}
