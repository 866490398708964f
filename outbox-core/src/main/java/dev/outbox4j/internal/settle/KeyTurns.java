package dev.outbox4j.internal.settle;

import dev.outbox4j.internal.state.HeldRow;
import java.util.HashSet;
import java.util.Set;
import java.util.function.Consumer;
import java.util.function.Predicate;

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

  /**
   * Takes those rows out of a queue whose key has a row in one of the others, or one that waits.
   * For a row that was locked itself the others wait, however, and not the other way round.
   */
  void holdBack(RowQueue from, RowQueue... before) {
    Set<String> keys = keys(before);
    Set<String> behind = keys(waiting);
    move(
        from,
        row -> isOneOf(keys, row) || (row.busySince == 0 && isOneOf(behind, row)),
        keys.isEmpty() && behind.isEmpty(),
        false);
  }

  /** The same of a queue of rows that are older than those that wait. */
  void holdBackOlder(RowQueue from, RowQueue... before) {
    Set<String> keys = keys(before);
    move(from, row -> isOneOf(keys, row), keys.isEmpty(), true);
  }

  private void move(
      RowQueue from, Predicate<HeldRow> condition, boolean isOfNone, boolean isOlder) {
    if (isOfNone) {
      return;
    }
    RowQueue held = new RowQueue();
    from.moveIf(condition, held);
    held.forEach(heldBack);
    if (isOlder) {
      waiting.addAllFirst(held);
    } else {
      waiting.addAll(held);
    }
  }

  /** Adds rows that are older than those that wait. */
  void addOlder(RowQueue held) {
    held.forEach(heldBack);
    waiting.addAllFirst(held);
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
