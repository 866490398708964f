package dev.outbox4j.poller.internal;

import dev.outbox4j.poller.HeldBack;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalInt;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/**
 * Marks on a cursor, and the transactions that each waits for. A mark is set at a cursor up to
 * which every row is there, or is written by a transaction that was open when the mark was set. It
 * is safe when each of these has ended, and none of them is a prepared one. Confined to one thread.
 *
 * <p>The transactions are read after the cursor, and the prepared ones after those: a transaction
 * that is not among the open ones any more has ended, or is among the prepared ones by then.
 * Several marks are kept, so that one waits only for what was open when it was set.
 */
final class Marks {
  private static final int MOST = 64;
  private static final Duration APART = Duration.ofMillis(50);

  private final List<Mark> pending = new ArrayList<>();
  private @Nullable Mark safe;

  private static final class Mark {
    final Instant at;
    final Instant completeAt;
    final String cursor;
    final boolean inclusive;
    final Map<String, OpenTransaction> waited = new LinkedHashMap<>();
    boolean waitsForPrepared;

    Mark(Instant at, Instant completeAt, String cursor, boolean inclusive) {
      this.at = at;
      this.completeAt = completeAt;
      this.cursor = cursor;
      this.inclusive = inclusive;
    }

    /** Returns whether it is safe now. */
    boolean look(Reading reading) {
      if (!waitsForPrepared) {
        retain(reading.open());
        if (!waited.isEmpty()) {
          return false;
        }
        waitsForPrepared = true;
        reading.prepared().forEach(each -> waited.put(each.id(), each));
        return waited.isEmpty();
      }
      retain(reading.prepared());
      return waited.isEmpty();
    }

    private void retain(List<OpenTransaction> open) {
      Set<String> ids = new HashSet<>();
      open.forEach(each -> ids.add(each.id()));
      waited.keySet().retainAll(ids);
    }
  }

  /**
   * Takes a reading into account, and sets a mark by it.
   *
   * @param reading what was found
   * @param cursor up to where the mark is; null if there is nothing to set one at
   * @param inclusive whether rows of this cursor are before the mark
   * @param completeAt by when everything is handled once all before the mark is
   * @param waitedFor which of the open transactions may write before the mark
   */
  void look(
      Reading reading,
      @Nullable String cursor,
      boolean inclusive,
      Instant completeAt,
      List<OpenTransaction> waitedFor) {
    for (Mark mark : List.copyOf(pending)) {
      if (mark.look(reading)) {
        pending.remove(mark);
        safe = mark;
      }
    }
    // all before the newest that is safe are of no interest any more
    Mark latest = safe;
    if (latest != null) {
      pending.removeIf(mark -> mark.at.isBefore(latest.at));
    }
    if (cursor != null && (isApart(reading.at()) || waitedFor.isEmpty())) {
      set(reading, cursor, inclusive, completeAt, waitedFor);
    }
  }

  private boolean isApart(Instant now) {
    return pending.isEmpty()
        || Duration.between(pending.get(pending.size() - 1).at, now).compareTo(APART) >= 0;
  }

  private void set(
      Reading reading,
      String cursor,
      boolean inclusive,
      Instant completeAt,
      List<OpenTransaction> waitedFor) {
    Mark mark = new Mark(reading.at(), completeAt, cursor, inclusive);
    waitedFor.forEach(each -> mark.waited.put(each.id(), each));
    if (mark.look(reading)) {
      safe = mark;
      pending.clear();
      return;
    }
    pending.add(mark);
    if (pending.size() > MOST) {
      thin();
    }
  }

  /** Every second one goes, but the newest stays. */
  private void thin() {
    List<Mark> kept = new ArrayList<>();
    for (int i = 0; i < pending.size(); i++) {
      if (i % 2 == 0 || i == pending.size() - 1) {
        kept.add(pending.get(i));
      }
    }
    pending.clear();
    pending.addAll(kept);
  }

  /** The latest mark that is safe; null if none was yet. */
  @Nullable Bound bound() {
    Mark latest = safe;
    return latest == null ? null : new Bound(latest.cursor, latest.inclusive, latest.completeAt);
  }

  /** Whether a mark waits for transactions. */
  boolean isHeldBack() {
    return !pending.isEmpty();
  }

  /** What the oldest mark waits for that is not safe. */
  Optional<HeldBack> heldBack(Instant now) {
    if (pending.isEmpty()) {
      return Optional.empty();
    }
    Mark oldest = pending.get(0);
    return oldest.waited.values().stream()
        .min(
            Comparator.comparing(
                OpenTransaction::began, Comparator.nullsLast(Comparator.naturalOrder())))
        .map(each -> heldBack(oldest, each, now));
  }

  private static HeldBack heldBack(Mark mark, OpenTransaction by, Instant now) {
    return new HeldBack(
        mark.at,
        Duration.between(mark.at, now.isBefore(mark.at) ? mark.at : now),
        by.process() == 0 ? OptionalInt.empty() : OptionalInt.of(by.process()),
        by.id(),
        Optional.ofNullable(by.application()).filter(name -> !name.isEmpty()),
        Optional.ofNullable(by.began()),
        mark.waited.size());
  }
}
