package dev.outbox4j.poller.internal;

import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/**
 * A place on a cursor. It is safe when nothing that is open can write before it any more, and
 * nothing that was prepared until then. Confined to one thread.
 */
abstract class Mark {
  private final Instant at;
  private final String cursor;
  private final boolean inclusive;
  private final Instant completeAt;
  private @Nullable Map<String, OpenTransaction> prepared;

  /**
   * Sets a mark.
   *
   * @param at when
   * @param cursor where
   * @param inclusive whether rows of this cursor are before the mark
   * @param completeAt by when everything is handled once all before the mark is
   */
  Mark(Instant at, String cursor, boolean inclusive, Instant completeAt) {
    this.at = at;
    this.cursor = cursor;
    this.inclusive = inclusive;
    this.completeAt = completeAt;
  }

  /** Returns whether it is safe now. */
  final boolean look(Reading reading) {
    Map<String, OpenTransaction> waited = prepared;
    if (waited == null) {
      if (!haveEnded(reading)) {
        return false;
      }
      waited = new LinkedHashMap<>();
      for (OpenTransaction each : reading.prepared()) {
        waited.put(each.id(), each);
      }
      prepared = waited;
    } else {
      Set<String> ids = new HashSet<>();
      reading.prepared().forEach(each -> ids.add(each.id()));
      waited.keySet().retainAll(ids);
    }
    return waited.isEmpty();
  }

  /** Whether nothing that is open can write before it any more. */
  abstract boolean haveEnded(Reading reading);

  /** The open transactions that may write before it, as they were at the latest look. */
  abstract List<OpenTransaction> open();

  /** When time alone may bring it further; empty if it does not. */
  Optional<Instant> next() {
    return Optional.empty();
  }

  /** What it waits for, as that was at the latest look. */
  final List<OpenTransaction> waitsFor() {
    return prepared == null ? open() : new ArrayList<>(prepared.values());
  }

  final Instant at() {
    return at;
  }

  final Bound bound(SourceServer server) {
    return new Bound(cursor, inclusive, completeAt, server, at);
  }

  /** Numbers before it are written by transactions that were open when it was set. */
  static final class OfNumbers extends Mark {
    private @Nullable Map<String, OpenTransaction> waited;

    OfNumbers(Instant at, String cursor) {
      super(at, cursor, true, at);
    }

    @Override
    boolean haveEnded(Reading reading) {
      Map<String, OpenTransaction> open = new LinkedHashMap<>();
      for (Session each : reading.sessions()) {
        OpenTransaction transaction = each.open();
        if (transaction != null) {
          open.put(transaction.id(), transaction);
        }
      }
      Map<String, OpenTransaction> before = waited;
      if (before == null) {
        waited = open;
        return open.isEmpty();
      }
      before.keySet().retainAll(open.keySet());
      return before.isEmpty();
    }

    @Override
    List<OpenTransaction> open() {
      return waited == null ? List.of() : new ArrayList<>(waited.values());
    }
  }

  /**
   * Times before it are written by sessions that are at work on a message that came before. Where
   * times may not be seen, a session counts until it was twice seen without a transaction, a margin
   * apart: between two transactions of one message it is without one for a moment.
   *
   * <p>A process takes a message's time, and can be seen to be at work on it a moment later; so it
   * is asked only a margin after that time.
   */
  static final class OfTimes extends Mark {
    /** When to look again for who is between two transactions. */
    private static final Duration SHORTLY = Duration.ofMillis(10);

    private final Instant before;
    private final Instant ripeAt;
    private final Duration margin;

    /** When a process was first seen without a transaction; null until it is ripe. */
    private @Nullable Map<Integer, Optional<Instant>> hidden;

    private final List<OpenTransaction> open = new ArrayList<>();
    private @Nullable Instant next;

    /**
     * Sets a mark.
     *
     * @param at when
     * @param before times up to this one are before it
     * @param cursor where
     * @param inclusive whether rows of this cursor are before the mark
     * @param completeAt by when everything is handled once all before the mark is
     * @param margin after which time sessions can be seen to be at work
     */
    OfTimes(
        Instant at,
        Instant before,
        String cursor,
        boolean inclusive,
        Instant completeAt,
        Duration margin) {
      super(at, cursor, inclusive, completeAt);
      this.before = before;
      this.ripeAt = before.plus(margin);
      this.margin = margin;
      this.next = ripeAt;
    }

    @Override
    boolean haveEnded(Reading reading) {
      if (reading.at().isBefore(ripeAt)) {
        return false;
      }
      open.clear();
      next = null;
      boolean between = false;
      Map<Integer, Session> byProcess = new LinkedHashMap<>();
      for (Session each : reading.sessions()) {
        if (each.hidden()) {
          byProcess.put(each.process(), each);
        } else if (each.mayWrite(before)) {
          between |= !wait(each);
        }
      }
      waitForHidden(byProcess, reading.at());
      if (between) {
        next = reading.at().plus(SHORTLY);
      }
      return open.isEmpty() && !between && Objects.requireNonNull(hidden).isEmpty();
    }

    /** Returns whether it has a transaction. */
    private boolean wait(Session session) {
      OpenTransaction transaction = session.open();
      if (transaction != null) {
        open.add(transaction);
      }
      return transaction != null;
    }

    private void waitForHidden(Map<Integer, Session> now, Instant at) {
      Map<Integer, Optional<Instant>> waited = hidden;
      if (waited == null) {
        waited = new LinkedHashMap<>();
        for (Session each : now.values()) {
          waited.put(each.process(), Optional.empty());
        }
        hidden = waited;
      }
      waited.keySet().retainAll(now.keySet());
      for (Session each : now.values()) {
        Optional<Instant> free = waited.get(each.process());
        if (free == null) {
          continue; // it came after the mark was ripe
        }
        if (wait(each)) {
          continue;
        }
        if (free.isPresent() && !at.isBefore(free.get().plus(margin))) {
          waited.remove(each.process());
        } else {
          Instant first = free.orElse(at);
          waited.put(each.process(), Optional.of(first));
          Instant again = first.plus(margin);
          next = next == null || again.isBefore(next) ? again : next;
        }
      }
    }

    @Override
    List<OpenTransaction> open() {
      return open;
    }

    @Override
    Optional<Instant> next() {
      return Optional.ofNullable(next);
    }
  }
}
