package dev.outbox4j.internal.order;

import dev.outbox4j.OutboxStoreException;
import dev.outbox4j.internal.state.EngineHealth.Operation;
import dev.outbox4j.internal.state.HeldRow;
import dev.outbox4j.internal.state.Shared;
import dev.outbox4j.spi.BucketStore;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import java.util.function.LongSupplier;

/**
 * Counts deliveries that may follow one that ended its process, before they begin, so that a
 * message which does so each time comes to its end. Confined to the fetcher.
 */
final class DeliveryCounts {
  private static final int MOST = 500;
  private static final long AGAIN = TimeUnit.SECONDS.toNanos(1);

  private final BucketStore store;
  private final Shared shared;
  private final KeyChains chains;
  private final Agenda agenda;
  private final Consumer<List<HeldRow>> withdrawn;
  private final LongSupplier clock;
  private final int first;
  private int most;
  private boolean countedLast;

  /** Those that were counted, and had not begun when it was last asked. */
  private final List<HeldRow> ahead = new ArrayList<>();

  DeliveryCounts(
      BucketStore store,
      Shared shared,
      KeyChains chains,
      Agenda agenda,
      Consumer<List<HeldRow>> withdrawn,
      LongSupplier clock,
      int first) {
    this.store = store;
    this.shared = shared;
    this.chains = chains;
    this.agenda = agenda;
    this.withdrawn = withdrawn;
    this.clock = clock;
    this.first = first;
    this.most = first;
  }

  /** A bucket was taken: what it begins with may end this process as it did the one before. */
  void startOver() {
    most = first;
    ahead.clear();
  }

  /**
   * Returns how many may be counted at once: few at first, since with one that ends its process
   * those beside it were counted in vain; then one more for each that has begun.
   */
  int most() {
    int begun = (int) ahead.stream().filter(row -> row.run() != null).count();
    ahead.removeIf(row -> row.run() != null || row.state() == HeldRow.State.SETTLED);
    most = Math.min(MOST, most + begun);
    return most;
  }

  /** Tells whether there was something to count the last time. */
  boolean countedLast() {
    return countedLast;
  }

  /** Counts those that are to be counted; returns the rows that may be handled. */
  List<HeldRow> counted(List<HeldRow> taken) {
    if (taken.isEmpty()) {
      return taken;
    }
    List<HeldRow> toCount =
        taken.stream().filter(row -> HeldOfQueue.bucketOf(row).counted()).toList();
    countedLast = !toCount.isEmpty();
    if (!countedLast) {
      ahead.clear();
      return taken;
    }
    ahead.addAll(toCount);
    return withoutFailed(taken, toCount, count(toCount));
  }

  /**
   * Returns the ids that were counted; others hold a row locked, or the statement failed. If a row
   * is refused, halves are tried until it stands alone.
   */
  private Set<Long> count(List<HeldRow> rows) {
    try {
      return shared
          .connections()
          .spend(() -> store.count(rows.stream().map(HeldRow::lease).toList()))
          .done();
    } catch (RuntimeException failure) {
      if (rows.size() == 1 || !isOfARow(failure)) {
        shared.health().failed(Operation.CLAIM, failure);
        return Set.of();
      }
    }
    int half = rows.size() / 2;
    Set<Long> counted = new HashSet<>(count(rows.subList(0, half)));
    counted.addAll(count(rows.subList(half, rows.size())));
    return counted;
  }

  private static boolean isOfARow(RuntimeException failure) {
    return failure instanceof OutboxStoreException known
        && known.fault() == OutboxStoreException.Fault.ROW;
  }

  /** Leaves out what was not counted, with what follows it in its key. */
  private List<HeldRow> withoutFailed(
      List<HeldRow> taken, List<HeldRow> toCount, Set<Long> counted) {
    Map<String, HeldRow> failed = new HashMap<>(); // the first of each key
    for (HeldRow row : toCount) {
      String key = row.message().orderingKey();
      if (key != null && !counted.contains(row.id())) {
        failed.merge(key, row, (one, other) -> one.id() < other.id() ? one : other);
      }
    }
    List<HeldRow> left = new ArrayList<>(taken.size());
    for (HeldRow row : taken) {
      String key = row.message().orderingKey();
      boolean isCounted = !HeldOfQueue.bucketOf(row).counted() || counted.contains(row.id());
      HeldRow first = key == null ? null : failed.get(key);
      if (isCounted && (first == null || row.id() < first.id())) {
        left.add(row);
      } else {
        leaveOut(row, isCounted);
      }
    }
    failed.forEach( // once no row of the key is expected that is left out
        (key, row) -> {
          chains.waits(key, HeldOfQueue.bucketOf(row).bucket(), row.id());
          agenda.add(row.id(), clock.getAsLong() + AGAIN);
        });
    return left;
  }

  private void leaveOut(HeldRow row, boolean isCounted) {
    chains.unexpected(row);
    if (isCounted) {
      withdrawn.accept(List.of(row));
    } else if (row.withdraw()) {
      shared.registry().settle(row);
    }
    if (row.message().orderingKey() == null) {
      agenda.add(row.id(), clock.getAsLong() + AGAIN);
    }
  }
}
