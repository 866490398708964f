package dev.outbox4j.internal.lease;

import dev.outbox4j.internal.state.HeldRow;
import dev.outbox4j.internal.state.HeldRow.State;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;

/**
 * Rows whose lease could not be extended with the others', in the order of their last try. Confined
 * to the lease keeper.
 *
 * <p>A statement that takes long delays whatever else the keeper has to do. So the more often one
 * that named a row took too long, the fewer rows are tried again with it.
 */
final class StuckRows {
  /** With whom a row is tried again. */
  enum Company {
    /** All others of its queue. */
    ALL,
    /** A few: one at first, and more while that succeeds. */
    FEW,
    /** None. */
    NONE,
    /** None, and after those of which it is not known that they are at fault themselves. */
    NONE_AND_LAST
  }

  private record Stuck(long since, Company company) {}

  private final Map<HeldRow, Stuck> rows = new LinkedHashMap<>();

  /** Queues that had their turn, or have failed; the longest ago first. */
  private final Set<String> served = new LinkedHashSet<>();

  boolean isEmpty() {
    return rows.isEmpty();
  }

  void removeSettled() {
    rows.keySet().removeIf(row -> row.state() == State.SETTLED || row.knownLost());
  }

  void remove(HeldRow row) {
    rows.remove(row);
  }

  /** Puts a row behind the others; returns since when it has been stuck. */
  long put(HeldRow row, Company company, long now) {
    Stuck known = rows.remove(row);
    long since = known == null ? now : known.since();
    rows.put(row, new Stuck(since, company));
    return since;
  }

  /** Returns with whom a row was tried last. */
  Company company(HeldRow row) {
    Stuck known = rows.get(row);
    return known == null ? Company.ALL : known.company();
  }

  /** Returns the rows of a queue that are to be tried in such a company. */
  List<HeldRow> of(String queue, Company company) {
    List<HeldRow> found = new ArrayList<>();
    rows.forEach(
        (row, stuck) -> {
          if (stuck.company() == company && row.queue().equals(queue)) {
            found.add(row);
          }
        });
    return found;
  }

  /** Returns the queues of rows that are stuck, in turn. */
  List<String> queues() {
    Set<String> queues = new LinkedHashSet<>();
    rows.keySet().forEach(row -> queues.add(row.queue()));
    return inTurn(queues);
  }

  /** Tells whether statements for a queue took too long, and some row of them is still stuck. */
  boolean isSlow(String queue) {
    return rows.entrySet().stream()
        .anyMatch(
            row -> row.getValue().company() != Company.ALL && row.getKey().queue().equals(queue));
  }

  /** A queue has had its turn, or failed: the others go before it. */
  void served(String queue) {
    served.remove(queue);
    served.add(queue);
  }

  /** A queue is in no trouble. */
  void renewed(String queue) {
    served.remove(queue);
  }

  /** Puts queues in the order of their turns. */
  List<String> inTurn(Set<String> queues) {
    List<String> inTurn = new ArrayList<>(queues);
    inTurn.removeAll(served);
    served.stream().filter(queues::contains).forEach(inTurn::add);
    return inTurn;
  }
}
