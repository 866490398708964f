package dev.outbox4j.internal.order;

import dev.outbox4j.internal.state.HeldRow;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.List;
import org.jspecify.annotations.Nullable;

/** Rows of one key that wait for their turn, in the order of their ids. Not thread-safe. */
final class WaitingRows {
  private final Deque<HeldRow> rows = new ArrayDeque<>(2);
  private long bytes;

  int count() {
    return rows.size();
  }

  /** Returns the size of their payloads. */
  long bytes() {
    return bytes;
  }

  boolean isEmpty() {
    return rows.isEmpty();
  }

  boolean hasId(long id) {
    return rows.stream().anyMatch(row -> row.id() == id);
  }

  void add(HeldRow row) {
    Deque<HeldRow> later = new ArrayDeque<>(0);
    while (!rows.isEmpty() && rows.getLast().id() > row.id()) {
      later.addFirst(rows.removeLast()); // it was committed late, or is handled again
    }
    rows.addLast(row);
    rows.addAll(later);
    bytes += row.bytes();
  }

  @Nullable HeldRow peekFirst() {
    return rows.peekFirst();
  }

  @Nullable HeldRow takeFirst() {
    HeldRow first = rows.pollFirst();
    if (first != null) {
      bytes -= first.bytes();
    }
    return first;
  }

  boolean remove(HeldRow row) {
    boolean removed = rows.remove(row);
    if (removed) {
      bytes -= row.bytes();
    }
    return removed;
  }

  /** Moves the rows from an id on to those that were taken out. */
  void removeFrom(long id, List<HeldRow> removed) {
    while (!rows.isEmpty() && rows.getLast().id() >= id) {
      HeldRow last = rows.removeLast();
      bytes -= last.bytes();
      removed.add(last);
    }
  }

  /** Returns the id of the first, or null if there is none. */
  @Nullable Long firstId() {
    HeldRow first = rows.peekFirst();
    return first == null ? null : first.id();
  }
}
