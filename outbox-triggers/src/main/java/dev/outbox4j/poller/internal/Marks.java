package dev.outbox4j.poller.internal;

import dev.outbox4j.poller.HeldBack;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Optional;
import java.util.OptionalInt;
import org.jspecify.annotations.Nullable;

/**
 * Marks on a cursor. The sessions are read after the cursor, and the prepared transactions after
 * those: a transaction that no session has any more has ended, or is among the prepared ones by
 * then. Several marks are kept, so that one waits only for what was open when it was set. Confined
 * to one thread.
 */
final class Marks {
  private static final int MOST = 64;
  private static final Duration APART = Duration.ofMillis(50);

  private final SourceServer server;
  private final List<Mark> pending = new ArrayList<>();
  private @Nullable Mark safe;

  /**
   * Creates none.
   *
   * @param server of which server; they say nothing about another one
   */
  Marks(SourceServer server) {
    this.server = server;
  }

  /**
   * Takes a reading into account, and sets a mark.
   *
   * @param reading what was found
   * @param fresh a mark by this reading; null if there is nothing to set one at
   */
  void look(Reading reading, @Nullable Mark fresh) {
    for (Mark mark : List.copyOf(pending)) {
      if (mark.look(reading)) {
        pending.remove(mark);
        safe = mark;
      }
    }
    // all before the newest that is safe are of no interest any more
    Mark latest = safe;
    if (latest != null) {
      pending.removeIf(mark -> mark.at().isBefore(latest.at()));
    }
    if (fresh != null) {
      set(reading, fresh);
    }
  }

  private void set(Reading reading, Mark fresh) {
    if (fresh.look(reading)) {
      safe = fresh;
      pending.clear();
    } else if (isApart(reading.at())) {
      pending.add(fresh);
      if (pending.size() > MOST) {
        thin();
      }
    }
  }

  private boolean isApart(Instant now) {
    return pending.isEmpty()
        || Duration.between(pending.get(pending.size() - 1).at(), now).compareTo(APART) >= 0;
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
    return latest == null ? null : latest.bound(server);
  }

  /** Whether a mark waits for transactions. */
  boolean isHeldBack() {
    return pending.stream().anyMatch(mark -> !mark.waitsFor().isEmpty());
  }

  /** When time alone may make a mark safe; empty if none waits for that. */
  Optional<Instant> next() {
    return pending.stream()
        .filter(mark -> mark.waitsFor().isEmpty())
        .flatMap(mark -> mark.next().stream())
        .min(Comparator.naturalOrder());
  }

  /** What the oldest mark waits for that waits for transactions. */
  Optional<HeldBack> heldBack(Instant now) {
    return pending.stream()
        .filter(mark -> !mark.waitsFor().isEmpty())
        .findFirst()
        .map(mark -> heldBack(mark, now));
  }

  private static HeldBack heldBack(Mark mark, Instant now) {
    List<OpenTransaction> waited = mark.waitsFor();
    OpenTransaction by =
        waited.stream()
            .min(
                Comparator.comparing(
                    OpenTransaction::began, Comparator.nullsLast(Comparator.naturalOrder())))
            .orElseThrow();
    return new HeldBack(
        mark.at(),
        Duration.between(mark.at(), now.isBefore(mark.at()) ? mark.at() : now),
        by.process() == 0 ? OptionalInt.empty() : OptionalInt.of(by.process()),
        by.id(),
        Optional.ofNullable(by.application()).filter(name -> !name.isEmpty()),
        Optional.ofNullable(by.began()),
        waited.size());
  }
}
