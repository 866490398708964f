package dev.outbox4j.internal;

import dev.outbox4j.internal.Vitals.Operation;
import dev.outbox4j.spi.DeadLetterEntry;
import dev.outbox4j.spi.DeadLetterWriter;
import dev.outbox4j.spi.OutboxStore;
import dev.outbox4j.spi.RetryUpdate;
import dev.outbox4j.spi.StoreException;
import dev.outbox4j.spi.SubscriberEvents.Phase;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.Iterator;
import java.util.List;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import java.util.function.Predicate;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Moves terminal failures to the dead letters. While those are broken, rows wait here under renewed
 * leases and are tried again, so healthy messages flow on; what exceeds the room is put off in the
 * outbox. Nothing is lost either way. Confined to the completer's thread, but for {@link
 * #waiting()}.
 *
 * <p>A table that refuses single rows must hold back no other, and must not keep the thread from
 * acks either. So the group that is tried is halved until what is refused stands alone, by a
 * bounded number of statements, and the search goes on a while later with the rows that are still
 * untried.
 */
final class DeadLetterDesk {
  private static final Logger log = LoggerFactory.getLogger(DeadLetterDesk.class);

  private static final int MAX_WAITING = 1_000;
  private static final int MAX_FLUSH = 500;
  private static final Duration PUT_OFF = Duration.ofSeconds(30);

  /** How many statements may be refused before the search for the refused rows pauses. */
  private static final int MAX_REFUSALS = 24;

  /** How long a search lasts, however fast or slow the server. */
  private static final long LONGEST_SEARCH = TimeUnit.MILLISECONDS.toNanos(50);

  /** Searching takes one part in so many of the thread's time, unless a statement takes long. */
  private static final int COST_SHARE = 10;

  private static final long LONGEST_PAUSE = TimeUnit.SECONDS.toNanos(2);

  private final String subscriber;
  private final OutboxStore store;
  private final @Nullable DeadLetterWriter writer;
  private final ConnectionBudget connections;
  private final InFlightRegistry registry;
  private final Vitals vitals;
  private final Backoff backoff = new Backoff();

  /** To be tried now. A row leaves it only when it is settled or waits elsewhere. */
  private final Deque<InFlight> fresh = new ArrayDeque<>();

  /** Waiting, not refused alone. */
  private final Deque<InFlight> untried = new ArrayDeque<>();

  /** Waiting, refused alone. */
  private final Deque<InFlight> refused = new ArrayDeque<>();

  /** Beyond the room for waiting. */
  private final List<InFlight> tooMany = new ArrayList<>();

  private int groupSize = MAX_FLUSH;
  private long nextTryAt;
  private boolean triedWhileStopping;
  private boolean searching;
  private long tellPutOffsAt = System.nanoTime();
  private int putOffsUntold;
  private volatile int waitingCount;

  DeadLetterDesk(
      SubscriberSettings settings,
      ConnectionBudget connections,
      InFlightRegistry registry,
      Vitals vitals) {
    this.subscriber = settings.name();
    this.store = settings.store();
    this.writer = settings.deadLetters();
    this.connections = connections;
    this.registry = registry;
    this.vitals = vitals;
  }

  boolean exist() {
    return writer != null;
  }

  void add(InFlight row) {
    fresh.add(row);
  }

  /** Returns how many rows the dead letters have not taken. */
  int waiting() {
    return waitingCount;
  }

  /** Tells whether nothing is left to write; when stopping, one more try of each row is enough. */
  boolean idle(boolean stopping) {
    return fresh.isEmpty() && (held() == 0 || (stopping && triedWhileStopping && !searching));
  }

  private int held() {
    return untried.size() + refused.size();
  }

  /** Writes what there is and returns how long until the next try is due. */
  long flush(boolean stopping) {
    if (held() == 0) {
      if (!fresh.isEmpty()) {
        attempt(stopping);
      }
    } else if (System.nanoTime() - nextTryAt >= 0 || (stopping && !triedWhileStopping)) {
      for (InFlight row = untried.peekLast(); row != null; row = untried.peekLast()) {
        fresh.addFirst(row);
        untried.removeLast();
        registry.unparked();
      }
      attempt(stopping);
    } else {
      waitAll(); // the dead letters are known to be broken
    }
    putOff();
    waitingCount = held();
    return waitingCount == 0
        ? TimeUnit.HOURS.toNanos(1)
        : Math.max(1, nextTryAt - System.nanoTime());
  }

  private void attempt(boolean stopping) {
    triedWhileStopping |= stopping;
    Search search = new Search(System.nanoTime());
    int refusedBefore = refused.size();
    moveFresh(search);
    waitAll(); // what the search had no time for
    moveRefused(search, Math.min(refusedBefore, refused.size()));
    searching = !search.trouble && !untried.isEmpty();
    if (!searching) {
      groupSize = MAX_FLUSH;
    }
    if (held() == 0) {
      backoff.reset();
      vitals.succeeded(Operation.DEAD_LETTER);
      return;
    }
    long now = System.nanoTime();
    nextTryAt =
        now
            + (searching
                ? Math.min(COST_SHARE * (now - search.begunAt), LONGEST_PAUSE)
                : backoff.nextNanos());
  }

  /** One attempt to move what there is, by as many statements as may be refused in one go. */
  private static final class Search {
    private final long begunAt;
    private boolean trouble;
    private int refusals;

    Search(long begunAt) {
      this.begunAt = begunAt;
    }

    boolean stopped() {
      return trouble
          || refusals >= MAX_REFUSALS
          || (refusals > 0 && System.nanoTime() - begunAt > LONGEST_SEARCH);
    }
  }

  /** One bad row must not hold back the others, but a database in trouble holds back all. */
  private void moveFresh(Search search) {
    while (!fresh.isEmpty() && !search.stopped()) {
      List<InFlight> group = first(fresh, groupSize);
      if (move(group, search)) {
        for (InFlight row : group) {
          fresh.removeFirst();
          registry.settle(row);
        }
        groupSize = Math.min(2 * groupSize, MAX_FLUSH);
      } else if (!search.trouble) {
        if (group.size() == 1) {
          hold(group.get(0), refused);
          fresh.removeFirst();
        }
        groupSize = Math.max(1, group.size() / 2);
      }
    }
  }

  /** They are known to be refused, so they are tried together and, if that fails, one by one. */
  private void moveRefused(Search search, int count) {
    int size = MAX_FLUSH;
    for (int left = count; left > 0 && !search.stopped(); ) {
      List<InFlight> group = first(refused, Math.min(size, left));
      if (move(group, search)) {
        for (InFlight row : group) {
          refused.removeFirst();
          registry.unparked();
          registry.settle(row);
        }
        left -= group.size();
        size = Math.min(2 * size, MAX_FLUSH);
      } else if (group.size() == 1) {
        refused.addLast(refused.removeFirst());
        left--;
      } else {
        size = 1;
      }
    }
  }

  private static List<InFlight> first(Deque<InFlight> rows, int count) {
    List<InFlight> group = new ArrayList<>(Math.min(rows.size(), count));
    Iterator<InFlight> all = rows.iterator();
    for (int i = 0; i < count && all.hasNext(); i++) {
      group.add(all.next());
    }
    return group;
  }

  /** Moves rows by one statement and tells of it; false if the statement failed. */
  private boolean move(List<InFlight> rows, Search search) {
    List<DeadLetterEntry> entries = new ArrayList<>(rows.size());
    for (InFlight row : rows) {
      Settlement.DeadLetter terminal = (Settlement.DeadLetter) row.settlement();
      entries.add(
          new DeadLetterEntry(
              row.lease(), terminal.reason(), terminal.attempts(), terminal.exception()));
    }
    Set<Long> moved;
    try {
      DeadLetterWriter target = java.util.Objects.requireNonNull(writer);
      moved = connections.spend(() -> target.write(entries));
    } catch (RuntimeException | Error thrown) { // an Error too must not take the rows with it
      failed(rows, thrown, search);
      return false;
    }
    Predicate<InFlight> written = Completer.among(rows, moved);
    for (InFlight row : rows) {
      if (written.test(row)) {
        var reason = ((Settlement.DeadLetter) row.settlement()).reason();
        vitals.tell(observer -> observer.deadLettered(subscriber, row, reason, true));
      } else {
        Completer.reportMissing(vitals, subscriber, row, Phase.DEAD_LETTER);
      }
    }
    return true;
  }

  private void failed(List<InFlight> rows, Throwable thrown, Search search) {
    vitals.failed(Operation.DEAD_LETTER, thrown);
    StoreException failure = Completer.asStoreException(thrown);
    search.refusals++;
    search.trouble = failure.fault() != StoreException.Fault.ROW;
    if (failure.outcomeUnknown()) {
      rows.forEach(row -> row.outcomeUnknown = true);
    }
  }

  private void waitAll() {
    for (InFlight row = fresh.peekFirst(); row != null; row = fresh.peekFirst()) {
      hold(row, untried);
      fresh.removeFirst();
    }
  }

  /**
   * Keeps a row for a later try; it no longer stands in the way of claims. If there is no room, a
   * row that was refused alone makes way.
   */
  private void hold(InFlight row, Deque<InFlight> where) {
    if (held() < MAX_WAITING) {
      where.addLast(row);
      registry.parked();
    } else if (refused.isEmpty()) {
      tooMany.add(row);
    } else {
      tooMany.add(refused.removeFirst());
      registry.unparked();
      where.addLast(row);
      registry.parked();
    }
  }

  private void putOff() {
    while (!tooMany.isEmpty()) {
      List<InFlight> rows = tooMany.subList(0, Math.min(tooMany.size(), MAX_FLUSH));
      putOff(rows);
      rows.forEach(registry::settle);
      rows.clear();
    }
  }

  /** Says it now and then: while the dead letters are broken it goes on with every failure. */
  private void warnOfPutOffs(int rows) {
    putOffsUntold += rows;
    long now = System.nanoTime();
    if (now - tellPutOffsAt >= 0) {
      log.warn(
          "[{}] {} more rows cannot be dead-lettered now and are put off by {}",
          subscriber,
          putOffsUntold,
          PUT_OFF);
      putOffsUntold = 0;
      tellPutOffsAt = now + PUT_OFF.toNanos();
    }
  }

  private void putOff(List<InFlight> rows) {
    List<RetryUpdate> updates = new ArrayList<>(rows.size());
    for (InFlight row : rows) {
      boolean handled =
          ((Settlement.DeadLetter) row.settlement()).attempts() > row.row().attempts();
      updates.add(
          new RetryUpdate(row.lease(), PUT_OFF, "the dead letters are broken; put off", handled));
    }
    try {
      Predicate<InFlight> written =
          Completer.among(rows, connections.spend(() -> store.retry(updates)));
      for (InFlight row : rows) {
        if (written.test(row)) {
          vitals.tell(observer -> observer.retried(subscriber, row, PUT_OFF));
        } else {
          Completer.reportMissing(vitals, subscriber, row, Phase.RETRY);
        }
      }
      warnOfPutOffs(rows.size());
    } catch (RuntimeException | Error failure) {
      vitals.failed(Operation.DEAD_LETTER, failure); // ends when the dead letters are mended
      log.warn("[{}] {} rows are left to the end of their lease", subscriber, rows.size());
    }
  }
}
