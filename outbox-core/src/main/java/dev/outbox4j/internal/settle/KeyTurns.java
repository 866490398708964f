package dev.outbox4j.internal.settle;

import dev.outbox4j.internal.state.HeldRow;
import java.util.HashSet;
import java.util.Objects;
import java.util.Set;
import java.util.function.Consumer;

/**
 * Acks of an ordered queue that wait for an earlier one of their key to be written: what comes
 * again after a kill must not be older than what does not. Confined to the completer's thread.
 */
final class KeyTurns {
  private final RowQueue waiting = new RowQueue();
  private final Consumer<HeldRow> heldBack;

  /**
   * Creates it.
   *
   * @param heldBack is told of each row that comes to wait
   */
  KeyTurns(Consumer<HeldRow> heldBack) {
    this.heldBack = heldBack;
  }

  int size() {
    return waiting.size();
  }

  /** Takes those rows out of a queue whose key has a row that waits, or is in one of the others. */
  void holdBack(RowQueue from, RowQueue... before) {
    Set<String> keys = keys(before);
    waiting.forEach(row -> keys.add(Objects.requireNonNull(row.keyInOrder())));
    RowQueue held = new RowQueue();
    move(from, keys, held);
    waiting.addAll(held);
  }

  /** The same of a queue of rows that are older than those that wait. */
  void holdBackOlder(RowQueue from, RowQueue... before) {
    RowQueue held = new RowQueue();
    move(from, keys(before), held);
    waiting.addAllFirst(held);
  }

  /** Adds rows that are older than those that wait. */
  void addOlder(RowQueue held) {
    held.forEach(heldBack);
    waiting.addAllFirst(held);
  }

  private void move(RowQueue from, Set<String> keys, RowQueue held) {
    if (!keys.isEmpty()) {
      from.moveIf(row -> isOneOf(keys, row), held);
      held.forEach(heldBack);
    }
  }

  /** Puts those rows before those of a queue whose key has no row in one of the others. */
  void letGo(RowQueue to, RowQueue... before) {
    if (waiting.isEmpty()) {
      return;
    }
    Set<String> keys = keys(before);
    RowQueue free = new RowQueue();
    waiting.moveIf(row -> !isOneOf(keys, row), free);
    to.addAllFirst(free);
  }

  private static Set<String> keys(RowQueue... queues) {
    Set<String> keys = new HashSet<>();
    for (RowQueue queue : queues) {
      queue.forEach(
          row -> {
            String key = row.keyInOrder();
            if (key != null) {
              keys.add(key);
            }
          });
    }
    return keys;
  }

  private static boolean isOneOf(Set<String> keys, HeldRow row) {
    String key = row.keyInOrder();
    return key != null && keys.contains(key);
  }
}
