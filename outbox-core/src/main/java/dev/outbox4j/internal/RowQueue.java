package dev.outbox4j.internal;

import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/**
 * Rows in order, linked through the rows themselves: to move one needs no memory, so that none is
 * lost where there is none left. A row is in one queue at most.
 */
final class RowQueue {
  private @Nullable InFlight first;
  private @Nullable InFlight last;
  private int size;

  void addLast(InFlight row) {
    InFlight before = last;
    last = row;
    if (before == null) {
      first = row;
    } else {
      before.nextInQueue = row;
    }
    size++;
  }

  InFlight removeFirst() {
    InFlight row = Objects.requireNonNull(first);
    first = row.nextInQueue;
    row.nextInQueue = null;
    if (first == null) {
      last = null;
    }
    size--;
    return row;
  }

  /** Moves all rows of another queue behind those of this one. */
  void addAll(RowQueue other) {
    while (!other.isEmpty()) {
      addLast(other.removeFirst());
    }
  }

  @Nullable InFlight peekFirst() {
    return first;
  }

  /** Returns the first rows, at most so many; they stay in the queue. */
  List<InFlight> first(int count) {
    List<InFlight> rows = new ArrayList<>(Math.min(size, count));
    for (InFlight row = first; row != null && rows.size() < count; row = row.nextInQueue) {
      rows.add(row);
    }
    return rows;
  }

  boolean isEmpty() {
    return size == 0;
  }

  int size() {
    return size;
  }
}
