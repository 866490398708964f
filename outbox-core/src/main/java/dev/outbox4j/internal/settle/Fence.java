package dev.outbox4j.internal.settle;

import dev.outbox4j.OutboxStoreException;
import dev.outbox4j.SubscriberEvents.Phase;
import dev.outbox4j.internal.OneLine;
import dev.outbox4j.internal.state.EngineHealth;
import dev.outbox4j.internal.state.HeldRow;
import dev.outbox4j.internal.state.Shared;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.function.Predicate;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Reads the answers of writes that are fenced by a lease. */
public final class Fence {
  private static final Logger log = LoggerFactory.getLogger(Fence.class);

  private Fence() {}

  /**
   * Tells which of the rows the ids stand for. A subscriber that was away for longer than its lease
   * may claim a row again that it still has in hand: then one statement names the row under both
   * leases, and only the younger can be meant.
   */
  public static Predicate<HeldRow> among(List<HeldRow> rows, Set<Long> ids) {
    if (ids.isEmpty()) {
      return row -> false;
    }
    if (ids.size() == rows.size()) {
      return row -> true;
    }
    Map<Long, Long> youngest = new HashMap<>();
    rows.forEach(row -> youngest.merge(row.id(), row.leaseToken(), Math::max));
    return row ->
        ids.contains(row.id()) && Long.valueOf(row.leaseToken()).equals(youngest.get(row.id()));
  }

  /** A write did not find a row: it is another owner's, or an earlier try has settled it. */
  static void reportMissing(Shared shared, HeldRow row, Phase phase) {
    String subscriber = shared.subscriber();
    if (row.outcomeUnknown) {
      log.info("[{}] {}: an earlier {} may have taken effect", subscriber, row, phase);
      new FailureLog(shared.warnings()).unanswered(row);
      shared.events().outcomeUnknown(row, phase);
      return;
    }
    if (isTimerOfABucket(row)) {
      log.info(
          "[{}] {}: cancelled, or another was published in its place; its {} changes nothing",
          subscriber,
          row,
          phase);
    } else if (row.leaseOver(System.nanoTime())) {
      log.debug("[{}] {}: lease lost, found while writing {}", subscriber, row, phase);
    } else { // nobody else can have claimed it
      String text =
          "row "
              + row.id()
              + " of queue '"
              + OneLine.of(row.queue())
              + "' was not there to be written, though its lease has not run out: look for a trigger"
              + " or rule of yours that drops the write, for somebody who changed the row, and whether"
              + " a transactional handler has a pool of another database than the store's";
      String verb = phase.name().toLowerCase(Locale.ROOT);
      shared.warnings().warn(log, "missing " + phase, "{}: {}", verb, text);
      shared.health().noted(verb + ": " + text);
    }
    shared.events().leaseLost(row, phase);
  }

  /** In an ordered queue nothing keeps a timer from being cancelled or replaced while it runs. */
  private static boolean isTimerOfABucket(HeldRow row) {
    return row.lease().bucket() != null
        && row.message().timerId() != null
        && !row.leaseOver(System.nanoTime());
  }

  /** A store that breaks its contract is treated as one whose answer is not known. */
  public static OutboxStoreException asStoreException(Throwable failure) {
    return failure instanceof OutboxStoreException known
        ? known
        : new OutboxStoreException(
            "The store failed: " + EngineHealth.words(failure),
            OutboxStoreException.Fault.TRANSIENT,
            true,
            failure);
  }
}
