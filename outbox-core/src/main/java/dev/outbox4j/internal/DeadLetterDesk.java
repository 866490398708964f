package dev.outbox4j.internal;

import dev.outbox4j.internal.Vitals.Operation;
import dev.outbox4j.spi.DeadLetterEntry;
import dev.outbox4j.spi.DeadLetterWriter;
import dev.outbox4j.spi.OutboxStore;
import dev.outbox4j.spi.RetryUpdate;
import dev.outbox4j.spi.StoreException;
import dev.outbox4j.spi.SubscriberEvents.Phase;
import java.time.Duration;
import java.util.ArrayList;
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
 */
final class DeadLetterDesk {
  private static final Logger log = LoggerFactory.getLogger(DeadLetterDesk.class);

  private static final int MAX_WAITING = 1_000;
  private static final int MAX_FLUSH = 500;
  private static final Duration PUT_OFF = Duration.ofSeconds(30);

  private final String subscriber;
  private final OutboxStore store;
  private final @Nullable DeadLetterWriter writer;
  private final ConnectionBudget connections;
  private final InFlightRegistry registry;
  private final Vitals vitals;
  private final Backoff backoff = new Backoff();

  private final List<InFlight> fresh = new ArrayList<>();
  private final List<InFlight> waiting = new ArrayList<>();
  private long nextTryAt;
  private boolean triedWhileStopping;
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

  /** Tells whether nothing is left to write; when stopping, one more try is enough. */
  boolean idle(boolean stopping) {
    return fresh.isEmpty() && (waiting.isEmpty() || (stopping && triedWhileStopping));
  }

  /** Writes what there is and returns how long until the next try is due. */
  long flush(boolean stopping) {
    long now = System.nanoTime();
    boolean due = !waiting.isEmpty() && (now - nextTryAt >= 0 || (stopping && !triedWhileStopping));
    if (due) {
      retryWaiting();
      triedWhileStopping |= stopping;
    }
    while (!fresh.isEmpty()) {
      List<InFlight> group = fresh.subList(0, Math.min(fresh.size(), MAX_FLUSH));
      if (!waiting.isEmpty() && System.nanoTime() - nextTryAt < 0) {
        park(group); // the dead letters are known to be broken
      } else {
        write(group);
      }
      group.clear();
    }
    waitingCount = waiting.size();
    return waiting.isEmpty()
        ? TimeUnit.HOURS.toNanos(1)
        : Math.max(1, nextTryAt - System.nanoTime());
  }

  private void retryWaiting() {
    List<InFlight> rows = new ArrayList<>(waiting);
    waiting.clear();
    for (int from = 0; from < rows.size(); from += MAX_FLUSH) {
      List<InFlight> group = rows.subList(from, Math.min(rows.size(), from + MAX_FLUSH));
      group.forEach(row -> registry.unparked());
      if (!waiting.isEmpty()) {
        park(group);
      } else {
        write(group);
      }
    }
  }

  private void write(List<InFlight> rows) {
    try {
      move(rows);
      backoff.reset();
    } catch (StoreException failure) {
      if (failure.fault() == StoreException.Fault.ROW && rows.size() > 1) {
        oneByOne(rows);
        return;
      }
      if (failure.outcomeUnknown()) {
        rows.forEach(row -> row.outcomeUnknown = true);
      }
      park(rows);
    }
  }

  /** One bad row must not hold back the others, but a database in trouble holds back all. */
  private void oneByOne(List<InFlight> rows) {
    for (int i = 0; i < rows.size(); i++) {
      InFlight row = rows.get(i);
      try {
        move(List.of(row));
      } catch (StoreException failure) {
        row.outcomeUnknown |= failure.outcomeUnknown();
        if (failure.fault() != StoreException.Fault.ROW) {
          park(rows.subList(i, rows.size()));
          return;
        }
        park(List.of(row));
      }
    }
  }

  private void move(List<InFlight> rows) {
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
      vitals.succeeded(Operation.DEAD_LETTER);
    } catch (RuntimeException | Error failure) { // an Error too must not take the rows with it
      vitals.failed(Operation.DEAD_LETTER, failure);
      throw Completer.asStoreException(failure);
    }
    Predicate<InFlight> written = Completer.among(rows, moved);
    for (InFlight row : rows) {
      if (written.test(row)) {
        var reason = ((Settlement.DeadLetter) row.settlement()).reason();
        vitals.tell(observer -> observer.deadLettered(subscriber, row, reason, true));
      } else {
        Completer.reportMissing(vitals, subscriber, row, Phase.DEAD_LETTER);
      }
      registry.settle(row);
    }
  }

  /** Keeps rows for a later try; they no longer stand in the way of claims. */
  private void park(List<InFlight> rows) {
    if (waiting.isEmpty()) {
      nextTryAt = System.nanoTime() + backoff.nextNanos();
    }
    List<InFlight> tooMany = new ArrayList<>();
    for (InFlight row : rows) {
      if (waiting.size() < MAX_WAITING) {
        registry.parked();
        waiting.add(row);
      } else {
        tooMany.add(row);
      }
    }
    if (!tooMany.isEmpty()) {
      putOff(tooMany);
    }
  }

  private void putOff(List<InFlight> rows) {
    List<RetryUpdate> updates = new ArrayList<>(rows.size());
    for (InFlight row : rows) {
      updates.add(new RetryUpdate(row.lease(), PUT_OFF, "the dead letters are broken; put off"));
    }
    try {
      connections.spend(() -> store.retry(updates));
      log.warn(
          "[{}] {} more rows cannot be dead-lettered now and are put off by {}",
          subscriber,
          rows.size(),
          PUT_OFF);
      for (InFlight row : rows) {
        vitals.tell(observer -> observer.retried(subscriber, row, PUT_OFF));
      }
    } catch (RuntimeException | Error failure) {
      vitals.failed(Operation.DEAD_LETTER, failure); // ends when the dead letters are mended
      log.warn("[{}] {} rows are left to the end of their lease", subscriber, rows.size());
    }
    rows.forEach(registry::settle);
  }
}
