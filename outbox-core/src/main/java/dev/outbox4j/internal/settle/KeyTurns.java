package dev.outbox4j.internal.settle;

import dev.outbox4j.internal.state.HeldRow;
import java.util.Comparator;
import java.util.HashMap;
import java.util.Map;
import java.util.function.Consumer;

/**
 * Lets acks of a key of an ordered queue be written in the order in which they came: what comes
 * again after a kill must not be older than what does not. Each row has a turn, and none is in a
 * statement without all of its key that came before it, wherever these wait. Confined to the
 * completer's thread.
 */
final class KeyTurns {
  private static final Comparator<HeldRow> BY_TURN = Comparator.comparingLong(row -> row.turn);

  private final RowQueue waiting = new RowQueue();
  private final Consumer<HeldRow> heldBack;
  private long turns;

  /**
   * Creates it.
   *
   * @param heldBack is told of each row that comes to wait
   */
  KeyTurns(Consumer<HeldRow> heldBack) {
    this.heldBack = heldBack;
  }

  /** A row has come. */
  void came(HeldRow row) {
    row.turn = ++turns;
  }

  int size() {
    return waiting.size();
  }

  /** Sorts a queue, and takes those rows out of it that follow one here, or in the others. */
  void holdBack(RowQueue from, RowQueue... others) {
    Map<String, Long> least = leastTurns(others);
    waiting.forEach(row -> note(row, least));
    from.sort(BY_TURN);
    RowQueue held = new RowQueue();
    from.moveIf(row -> follows(row, least), held);
    add(held);
  }

  /** Adds rows that are to wait. */
  void add(RowQueue held) {
    try {
      held.forEach(heldBack);
    } finally {
      waiting.addAll(held);
    }
  }

  /**
   * Adds those rows to a queue that follow none in the others.
   *
   * @return whether there were some
   */
  boolean letGo(RowQueue to, RowQueue... others) {
    if (waiting.isEmpty()) {
      return false;
    }
    Map<String, Long> least = leastTurns(others);
    waiting.sort(BY_TURN);
    RowQueue free = new RowQueue();
    waiting.moveIf(row -> !follows(row, least), free);
    boolean some = !free.isEmpty();
    to.addAll(free);
    return some;
  }

  private static Map<String, Long> leastTurns(RowQueue... queues) {
    Map<String, Long> least = new HashMap<>();
    for (RowQueue queue : queues) {
      queue.forEach(row -> note(row, least));
    }
    return least;
  }

  private static void note(HeldRow row, Map<String, Long> least) {
    String key = row.keyInOrder();
    if (key != null) {
      least.merge(key, row.turn, Math::min);
    }
  }

  private static boolean follows(HeldRow row, Map<String, Long> least) {
    String key = row.keyInOrder();
    Long first = key == null ? null : least.get(key);
    return first != null && first < row.turn;
  }
}
