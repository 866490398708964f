package dev.outbox4j.internal.state;

import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import java.util.stream.Collectors;

/** The rows this subscriber holds leases on. Thread-safe. */
public final class HeldRows {
  private final Set<ClaimedBatch> batches = ConcurrentHashMap.newKeySet();
  private final AtomicInteger rows = new AtomicInteger();
  private final AtomicLong bytes = new AtomicLong();
  private final Map<String, AtomicInteger> byQueue;

  private volatile boolean stopping;
  private volatile boolean fewerOfLimited;

  public HeldRows() {
    this(Set.of());
  }

  /** Counts the rows of these queues each by itself, too. */
  public HeldRows(Set<String> limitedQueues) {
    this.byQueue =
        limitedQueues.stream()
            .collect(Collectors.toUnmodifiableMap(queue -> queue, queue -> new AtomicInteger()));
  }

  public void add(ClaimedBatch batch) {
    batch.heldBy(this);
    count(batch.queue(), batch.size());
    batches.add(batch);
    rows.addAndGet(batch.size());
    bytes.addAndGet(batch.bytes());
  }

  /** The subscriber is stopping, which handlers may ask for. */
  public void stop() {
    stopping = true;
  }

  public boolean stopping() {
    return stopping;
  }

  /** Takes those rows of a batch out again that no worker has. */
  public void withdraw(ClaimedBatch batch) {
    for (int i = 0; i < batch.size(); i++) {
      HeldRow row = batch.at(i);
      if (row != null && row.withdraw()) {
        settle(row);
      }
    }
  }

  /**
   * Ends a row's time in the engine. A second time changes nothing: counted twice, it would let its
   * batch be forgotten, and with it the leases of the batch's other rows.
   */
  public void settle(HeldRow row) {
    settle(List.of(row));
  }

  /** Ends the time of several rows. */
  public void settle(List<HeldRow> settled) {
    int rowsLess = 0;
    long bytesLess = 0;
    for (HeldRow row : settled) {
      if (row.settle()) {
        rowsLess++;
        count(row.queue(), -1);
        bytesLess += row.bytes();
        if (row.batch().settled()) {
          batches.remove(row.batch());
        }
      }
    }
    rows.addAndGet(-rowsLess);
    bytes.addAndGet(-bytesLess);
  }

  /** Discounts a row that stays leased but is not to stand in the way of further claims. */
  public void parked(HeldRow row) {
    rows.decrementAndGet();
    bytes.addAndGet(-row.bytes());
    count(row.queue(), -1);
  }

  /** Counts a parked row again. */
  public void unparked(HeldRow row) {
    rows.incrementAndGet();
    bytes.addAndGet(row.bytes());
    count(row.queue(), 1);
  }

  private void count(String queue, int more) {
    AtomicInteger held = byQueue.isEmpty() ? null : byQueue.get(queue);
    if (held != null) {
      held.addAndGet(more);
      if (more < 0) {
        fewerOfLimited = true;
      }
    }
  }

  /** Tells whether fewer rows of limited queues are held than when it was last forgotten. */
  boolean fewerOfLimited() {
    return fewerOfLimited;
  }

  void forgetFewerOfLimited() {
    fewerOfLimited = false;
  }

  /** Returns how many rows of a limited queue are held; 0 for other queues. */
  public int rowsOf(String queue) {
    AtomicInteger held = byQueue.get(queue);
    return held == null ? 0 : held.get();
  }

  public Iterable<ClaimedBatch> batches() {
    return batches;
  }

  public int rows() {
    return rows.get();
  }

  /** Returns the payload bytes held. */
  long bytes() {
    return bytes.get();
  }
}
