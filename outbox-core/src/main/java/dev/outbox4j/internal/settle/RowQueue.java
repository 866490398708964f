package dev.outbox4j.internal.settle;

import dev.outbox4j.internal.state.HeldRow;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Objects;
import java.util.function.Consumer;
import java.util.function.Predicate;
import org.jspecify.annotations.Nullable;

/**
 * Rows in order, linked through the rows themselves: to move one needs no memory, so that none is
 * lost where there is none left. A row is in one queue at most.
 */
final class RowQueue {
  private @Nullable HeldRow first;
  private @Nullable HeldRow last;
  private int size;

  void addLast(HeldRow row) {
    HeldRow before = last;
    last = row;
    if (before == null) {
      first = row;
    } else {
      before.nextInQueue = row;
    }
    size++;
  }

  HeldRow removeFirst() {
    HeldRow row = Objects.requireNonNull(first);
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

  /** Moves the rows that meet a condition behind those of another queue. */
  void moveIf(Predicate<HeldRow> condition, RowQueue other) {
    for (int left = size; left > 0; left--) {
      HeldRow row = removeFirst();
      (condition.test(row) ? other : this).addLast(row);
    }
  }

  void sort(Comparator<HeldRow> order) {
    List<HeldRow> rows = first(size);
    rows.sort(order);
    while (!isEmpty()) {
      removeFirst();
    }
    for (int i = 0; i < rows.size(); i++) { // from here on without need of memory
      addLast(rows.get(i));
    }
  }

  @Nullable HeldRow peekFirst() {
    return first;
  }

  /** Returns the first rows, at most so many; they stay in the queue. */
  List<HeldRow> first(int count) {
    List<HeldRow> rows = new ArrayList<>(Math.min(size, count));
    for (HeldRow row = first; row != null && rows.size() < count; row = row.nextInQueue) {
      rows.add(row);
    }
    return rows;
  }

  void forEach(Consumer<HeldRow> action) {
    for (HeldRow row = first; row != null; row = row.nextInQueue) {
      action.accept(row);
    }
  }

  boolean isEmpty() {
    return size == 0;
  }

  int size() {
    return size;
  }
}
