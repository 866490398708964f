package dev.outbox4j.internal;

import dev.outbox4j.FailureReason;
import dev.outbox4j.internal.Vitals.Operation;
import dev.outbox4j.spi.LeaseRef;
import dev.outbox4j.spi.OutboxStore;
import dev.outbox4j.spi.RescheduleUpdate;
import dev.outbox4j.spi.RetryUpdate;
import dev.outbox4j.spi.StoreException;
import dev.outbox4j.spi.SubscriberEvents;
import dev.outbox4j.spi.SubscriberEvents.Phase;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReference;
import java.util.concurrent.locks.LockSupport;
import java.util.function.Consumer;
import java.util.function.Function;
import java.util.function.LongConsumer;
import java.util.function.Predicate;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Writes outcomes by group commit, on a thread of its own: while one flush is on the wire, further
 * outcomes pile up and go in the next; alone, an outcome goes at once. A write that fails is kept
 * and tried again, its lease renewed meanwhile, until it succeeds or another owner has the row.
 */
final class Completer implements Runnable {
  private static final Logger log = LoggerFactory.getLogger(Completer.class);

  /** The most rows one statement settles. */
  private static final int MAX_FLUSH = 2_000;

  /** How long outcomes are gathered while more rows wait to be handled. */
  private static final long GATHER_NANOS = TimeUnit.MILLISECONDS.toNanos(2);

  private final String subscriber;
  private final OutboxStore store;
  private final ConnectionBudget connections;
  private final InFlightRegistry registry;
  private final Vitals vitals;
  private final DeadLetterDesk deadLetters;
  private final Supplier<Boolean> moreToHandle;
  private final LongConsumer onDueAgain;
  private final Runnable onSettled;
  private final int gatherUpTo;

  private final AtomicReference<@Nullable InFlight> completed = new AtomicReference<>();
  private volatile @Nullable Thread thread;
  private volatile boolean parked;
  private volatile boolean stopping;
  private volatile boolean givenUp;
  private volatile boolean acksOnly;

  // confined to the completer's thread
  private @Nullable InFlight collected; // taken over and not sorted yet, oldest first
  private List<InFlight> acks = new ArrayList<>();
  private List<InFlight> retries = new ArrayList<>();
  private List<InFlight> reschedules = new ArrayList<>();
  private final Backoff backoff = new Backoff();
  private final Refusals refusals;

  Completer(
      SubscriberSettings settings,
      ConnectionBudget connections,
      InFlightRegistry registry,
      Vitals vitals,
      DeadLetterDesk deadLetters,
      Signals signals) {
    this.subscriber = settings.name();
    this.store = settings.store();
    this.connections = connections;
    this.registry = registry;
    this.vitals = vitals;
    this.deadLetters = deadLetters;
    this.moreToHandle = signals.moreToHandle();
    this.onDueAgain = signals.onDueAgain();
    this.onSettled = signals.onSettled();
    this.gatherUpTo = settings.claiming().batchSize();
    this.refusals = new Refusals(vitals, settings.claiming().lease());
  }

  /** What the completer asks and tells the fetcher's side. */
  record Signals(Supplier<Boolean> moreToHandle, LongConsumer onDueAgain, Runnable onSettled) {}

  /** Takes a decided row over; from any thread. */
  void complete(InFlight delivery) {
    if (acksOnly && !(delivery.settlement() instanceof Settlement.Ack)) {
      delivery.lose(); // so that its lease is not renewed once more, which would make others wait
      log.debug("[{}] {} is left to the end of its lease", subscriber, delivery);
      return;
    }
    InFlight head;
    do {
      head = completed.get();
      delivery.nextCompleted = head;
    } while (!completed.compareAndSet(head, delivery));
    if (parked) {
      LockSupport.unpark(thread);
    }
  }

  /** Lets go of a row that was withdrawn because its lease is over; from any thread. */
  void abandon(InFlight delivery, Phase phase) {
    registry.settle(delivery);
    vitals.tell(observer -> observer.leaseLost(subscriber, delivery, phase));
    onSettled.run();
  }

  /**
   * Takes over nothing from now on but what is done: handlers are about to be interrupted by the
   * stop, and what that makes them throw is no failure of their messages.
   */
  void acksOnly() {
    acksOnly = true;
  }

  /** Ends the thread once everything is written. */
  void stop() {
    stopping = true;
    LockSupport.unpark(thread);
  }

  /** Ends the thread now, whatever is left. */
  void giveUp() {
    givenUp = true;
    stop();
  }

  @Override
  public void run() {
    thread = Thread.currentThread();
    while (!givenUp) {
      try {
        Thread.interrupted(); // an observer's: it would make every wait and connection fail
        long wait = flushAll();
        if (stopping && idle()) {
          return;
        }
        park(wait);
      } catch (Throwable unexpected) { // the thread must not die: what is pending stays pending
        survive(unexpected);
      }
    }
  }

  private void survive(Throwable unexpected) {
    try {
      vitals.failed(Operation.ACK, unexpected);
      park(backoff.nextNanos());
    } catch (Throwable worse) { // such as no memory even for that
      LockSupport.parkNanos(this, GATHER_NANOS);
    }
  }

  private boolean idle() {
    return completed.get() == null
        && collected == null
        && acks.isEmpty()
        && retries.isEmpty()
        && reschedules.isEmpty()
        && deadLetters.idle(stopping);
  }

  private void park(long nanos) {
    if (nanos <= 0) {
      return;
    }
    parked = true;
    try {
      if (completed.get() == null && !givenUp) {
        LockSupport.parkNanos(this, nanos);
      }
    } finally {
      parked = false;
    }
  }

  /** Writes what there is and returns how long to wait for more. */
  private long flushAll() {
    if (collect() > 0 && !stopping && moreToHandle.get()) {
      gather();
    }
    boolean ok = flush(Operation.ACK, acks, this::flushAcks);
    ok &= flush(Operation.RETRY, retries, this::flushRetries);
    ok &= flush(Operation.RESCHEDULE, reschedules, this::flushReschedules);
    long deadLetterWait = deadLetters.flush(stopping);
    if (!ok) {
      return backoff.nextNanos();
    }
    backoff.reset();
    refusals.nothingOwed();
    return completed.get() == null ? refusals.longestWait(deadLetterWait) : 0;
  }

  private int collect() {
    int count = sortCollected(); // what an Error, such as OutOfMemoryError, left behind
    InFlight top = completed.getAndSet(null);
    while (top != null) { // the stack gives the newest first
      InFlight next = top.nextCompleted;
      top.nextCompleted = collected;
      collected = top;
      top = next;
    }
    return count + sortCollected();
  }

  private int sortCollected() {
    int count = 0;
    for (InFlight row = collected; row != null; row = collected, count++) {
      sort(row);
      collected = row.nextCompleted; // only now: what is not sorted must not be forgotten
      row.nextCompleted = null;
    }
    return count;
  }

  private void sort(InFlight row) {
    Settlement settlement = row.settlement();
    if (settlement instanceof Settlement.Ack) {
      acks.add(row);
    } else if (settlement instanceof Settlement.Retry) {
      retries.add(row);
    } else if (settlement instanceof Settlement.Reschedule) {
      reschedules.add(row);
    } else if (settlement instanceof Settlement.DeadLetter) {
      if (deadLetters.exist()) {
        deadLetters.add(row);
      } else {
        acks.add(row); // terminal and nowhere to go: the row is deleted
      }
    } else {
      throw new AssertionError(settlement);
    }
  }

  /** While workers have rows to go on with, a larger group costs no one any time. */
  private void gather() {
    long until = System.nanoTime() + GATHER_NANOS;
    while (acks.size() < gatherUpTo && !stopping) {
      long left = until - System.nanoTime();
      if (left <= 0) {
        return;
      }
      LockSupport.parkNanos(this, left);
      collect();
      if (!moreToHandle.get()) {
        return;
      }
    }
  }

  /** Writes rows in statements of bounded size; returns false if some are left for later. */
  private boolean flush(Operation operation, List<InFlight> rows, Consumer<List<InFlight>> write) {
    while (!rows.isEmpty()) {
      List<InFlight> group = rows.subList(0, Math.min(rows.size(), MAX_FLUSH));
      try {
        write.accept(group);
      } catch (StoreException failure) {
        if (failure.fault() != StoreException.Fault.ROW) {
          if (failure.outcomeUnknown()) {
            group.forEach(row -> row.outcomeUnknown = true);
          }
          return false;
        }
        if (!oneByOne(operation, group, write)) {
          return false;
        }
      } catch (RuntimeException | Error unexpected) { // the statement may have taken effect
        group.forEach(row -> row.outcomeUnknown = true);
        throw unexpected;
      }
      group.clear();
      onSettled.run();
    }
    return true;
  }

  /** One bad row must not hold back the others; returns false if some are left for later. */
  private boolean oneByOne(
      Operation operation, List<InFlight> group, Consumer<List<InFlight>> write) {
    for (Iterator<InFlight> left = group.iterator(); left.hasNext(); left.remove()) {
      InFlight row = left.next();
      try {
        write.accept(List.of(row));
      } catch (StoreException failure) {
        if (failure.fault() != StoreException.Fault.ROW) {
          row.outcomeUnknown |= failure.outcomeUnknown();
          return false;
        }
        log.error(
            "[{}] the outcome of {} cannot be written; the row is left to the end of its lease: {}",
            subscriber,
            row,
            failure.getMessage());
        refusals.refused(operation);
        registry.settle(row);
      }
    }
    return true;
  }

  private void flushAcks(List<InFlight> rows) {
    Set<Long> done = write(Operation.ACK, () -> store.ack(leases(rows)));
    settle(
        rows,
        done,
        Phase.ACK,
        row -> {
          if (row.settlement() instanceof Settlement.DeadLetter terminal) {
            FailureReason reason = terminal.reason();
            vitals.tell(observer -> observer.deadLettered(subscriber, row, reason, false));
          } else {
            vitals.tell(observer -> observer.acked(subscriber, row));
          }
        });
  }

  private void flushRetries(List<InFlight> rows) {
    List<RetryUpdate> updates = new ArrayList<>(rows.size());
    for (InFlight row : rows) {
      Settlement.Retry retry = (Settlement.Retry) row.settlement();
      updates.add(new RetryUpdate(row.lease(), retry.delay(), retry.error()));
    }
    Set<Long> done = write(Operation.RETRY, () -> store.retry(updates));
    settle(
        rows,
        done,
        Phase.RETRY,
        row -> {
          Duration delay = ((Settlement.Retry) row.settlement()).delay();
          onDueAgain.accept(saturatedNanos(delay));
          vitals.tell(observer -> observer.retried(subscriber, row, delay));
        });
  }

  private void flushReschedules(List<InFlight> rows) {
    List<RescheduleUpdate> updates = new ArrayList<>(rows.size());
    for (InFlight row : rows) {
      updates.add(
          new RescheduleUpdate(row.lease(), ((Settlement.Reschedule) row.settlement()).delay()));
    }
    Set<Long> done = write(Operation.RESCHEDULE, () -> store.reschedule(updates));
    settle(
        rows,
        done,
        Phase.RESCHEDULE,
        row -> {
          Duration delay = ((Settlement.Reschedule) row.settlement()).delay();
          onDueAgain.accept(saturatedNanos(delay));
          vitals.tell(observer -> observer.rescheduled(subscriber, row, delay));
        });
  }

  private Set<Long> write(Operation operation, Supplier<Set<Long>> statement) {
    try {
      Set<Long> ids = connections.spend(statement);
      vitals.succeeded(operation);
      return ids;
    } catch (RuntimeException | Error failure) { // an Error must not be taken for an ack's
      vitals.failed(operation, failure);
      throw asStoreException(failure);
    }
  }

  /** A store that breaks its contract is treated as one in trouble. */
  static StoreException asStoreException(Throwable failure) {
    return failure instanceof StoreException known
        ? known
        : new StoreException(
            "The store failed: " + Vitals.words(failure),
            StoreException.Fault.TRANSIENT,
            true,
            failure);
  }

  private void settle(List<InFlight> rows, Set<Long> done, Phase phase, Consumer<InFlight> tell) {
    Predicate<InFlight> written = among(rows, done);
    for (InFlight row : rows) {
      if (row.state() == InFlight.State.SETTLED) {
        continue; // and told, before an Error came between it and the rows after it
      }
      if (written.test(row)) {
        tell.accept(row);
      } else {
        missing(row, phase);
      }
      registry.settle(row);
    }
  }

  /**
   * Tells which of the rows the ids stand for. A subscriber that was away for longer than its lease
   * may claim a row again that it still has in hand: then one statement names the row under both
   * leases, and only the younger can be meant.
   */
  static Predicate<InFlight> among(List<InFlight> rows, Set<Long> ids) {
    if (ids.size() == rows.size()) {
      return row -> true;
    }
    Map<Long, Integer> youngest = new HashMap<>();
    rows.forEach(row -> youngest.merge(row.id(), row.leaseToken(), Math::max));
    return row ->
        ids.contains(row.id()) && Integer.valueOf(row.leaseToken()).equals(youngest.get(row.id()));
  }

  private void missing(InFlight row, Phase phase) {
    reportMissing(vitals, subscriber, row, phase);
  }

  static void reportMissing(Vitals vitals, String subscriber, InFlight row, Phase phase) {
    if (row.outcomeUnknown) {
      log.info("[{}] {}: an earlier {} may have taken effect", subscriber, row, phase);
      vitals.tell((SubscriberEvents observer) -> observer.outcomeUnknown(subscriber, row, phase));
    } else {
      log.debug("[{}] {}: lease lost, found while writing {}", subscriber, row, phase);
      vitals.tell((SubscriberEvents observer) -> observer.leaseLost(subscriber, row, phase));
    }
  }

  static long saturatedNanos(Duration duration) {
    return duration.compareTo(Duration.ofDays(365)) > 0
        ? Duration.ofDays(365).toNanos()
        : duration.toNanos();
  }

  private static List<LeaseRef> leases(List<InFlight> rows) {
    Function<InFlight, LeaseRef> lease = InFlight::lease;
    return rows.stream().map(lease).toList();
  }
}
