package dev.outbox4j.internal;

import dev.outbox4j.internal.InFlight.State;
import dev.outbox4j.internal.Vitals.Operation;
import dev.outbox4j.spi.LeaseRef;
import dev.outbox4j.spi.OutboxStore;
import dev.outbox4j.spi.SubscriberEvents.Phase;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.locks.LockSupport;
import java.util.function.Predicate;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Renews the leases of all rows in the engine at half their life, and ends handlers that run past
 * their timeout; on a thread of its own, so that neither waits for a handler, a claim or an ack.
 */
final class LeaseKeeper implements Runnable {
  private static final Logger log = LoggerFactory.getLogger(LeaseKeeper.class);

  private static final int MAX_RENEW = 2_000;
  private static final long SHORTEST_TICK = TimeUnit.MILLISECONDS.toNanos(5);
  private static final long LONGEST_TICK = TimeUnit.SECONDS.toNanos(1);

  private final String subscriber;
  private final OutboxStore store;
  private final ConnectionBudget connections;
  private final InFlightRegistry registry;
  private final Completer completer;
  private final OutcomeApplier outcomes;
  private final Vitals vitals;
  private final Duration lease;
  private final @Nullable Duration handlerTimeout;
  private final long tick;

  /** For a connection: handlers past their timeout must not wait for long. */
  private final long longestWait;

  private volatile @Nullable Thread thread;
  private volatile boolean stopping;

  LeaseKeeper(
      SubscriberSettings settings,
      ConnectionBudget connections,
      InFlightRegistry registry,
      Completer completer,
      OutcomeApplier outcomes,
      Vitals vitals) {
    this.subscriber = settings.name();
    this.store = settings.store();
    this.connections = connections;
    this.registry = registry;
    this.completer = completer;
    this.outcomes = outcomes;
    this.vitals = vitals;
    this.lease = settings.claiming().lease();
    this.handlerTimeout = settings.work().handlerTimeout();
    this.longestWait = Math.min(LONGEST_TICK, lease.toNanos() / 8);
    long finest =
        handlerTimeout == null
            ? lease.toNanos() / 8
            : Math.min(lease.toNanos() / 8, handlerTimeout.toNanos() / 8);
    this.tick = Math.max(SHORTEST_TICK, Math.min(LONGEST_TICK, finest));
  }

  void stop() {
    stopping = true;
    LockSupport.unpark(thread);
  }

  @Override
  public void run() {
    thread = Thread.currentThread();
    while (!stopping) {
      // the thread must not die, and neither may keep the other from its turn: every lease hangs
      // on it
      try {
        renewDue(System.nanoTime());
      } catch (Throwable failure) {
        vitals.failed(Operation.RENEW, failure);
      }
      try {
        endOverdueHandlers(System.nanoTime());
      } catch (Throwable failure) {
        complain(failure);
      }
      LockSupport.parkNanos(this, tick);
      Thread.interrupted(); // whoever interrupts an engine thread means: look again
    }
  }

  private void complain(Throwable failure) {
    try {
      log.error(
          "[{}] a handler past its timeout could not be ended",
          subscriber,
          WithoutWords.of(failure));
    } catch (Throwable worse) { // the next tick tries again
      vitals.noted("a handler past its timeout could not be ended");
    }
  }

  private void endOverdueHandlers(long now) {
    if (handlerTimeout == null) {
      return;
    }
    long timeout = handlerTimeout.toNanos();
    for (LeaseBatch batch : registry.batches()) {
      for (int i = 0; i < batch.size(); i++) {
        InFlight row = batch.at(i);
        if (row != null && row.state() == State.RUNNING && now - row.startedAt() > timeout) {
          expire(row);
        }
      }
    }
  }

  private void expire(InFlight row) {
    TimeoutException failure =
        new TimeoutException("the handler ran longer than handlerTimeout " + handlerTimeout);
    if (row.expire(outcomes.timedOut(row, failure), completer::complete)) {
      log.warn(
          "[{}] the handler of {} ran longer than {}; it was interrupted, and the run counts as a failed attempt",
          subscriber,
          row,
          handlerTimeout);
      vitals.tell(observer -> observer.handlerTimedOut(subscriber, row));
    }
  }

  private void renewDue(long now) {
    List<LeaseBatch> due = new ArrayList<>();
    List<InFlight> rows = new ArrayList<>();
    boolean overdue = false;
    for (LeaseBatch batch : registry.batches()) {
      overdue |= batch.overdue();
      if (now - batch.renewAt() >= 0) {
        due.add(batch);
        for (int i = 0; i < batch.size(); i++) {
          InFlight row = batch.at(i);
          if (row != null && wanted(row)) {
            rows.add(row);
          }
        }
      }
    }
    if (due.isEmpty()) {
      if (!overdue) {
        vitals.succeeded(Operation.RENEW); // what could not be renewed is settled: none is owed
      }
      return;
    }
    long sentAt = System.nanoTime();
    try {
      for (int from = 0; from < rows.size(); from += MAX_RENEW) {
        if (stopping) {
          return;
        }
        renew(rows.subList(from, Math.min(rows.size(), from + MAX_RENEW)));
      }
      vitals.succeeded(Operation.RENEW);
      due.forEach(batch -> batch.renewed(sentAt, lease.toNanos()));
    } catch (RuntimeException failure) {
      vitals.failed(Operation.RENEW, failure);
      long again = System.nanoTime() + longestWait;
      due.forEach(batch -> batch.renewLater(again));
    }
  }

  private static boolean wanted(InFlight row) {
    return row.state() != State.SETTLED && !row.knownLost();
  }

  private void renew(List<InFlight> rows) {
    List<InFlight> sent = new ArrayList<>(rows.size());
    Set<Long> held =
        connections.spendOnRenewal(
            longestWait,
            () -> {
              // asked again after the wait: a row given back meanwhile must stay given back
              rows.stream().filter(LeaseKeeper::wanted).forEach(sent::add);
              List<LeaseRef> leases = sent.stream().map(InFlight::lease).toList();
              return leases.isEmpty() ? Set.of() : store.renew(leases, lease);
            });
    if (!held.isEmpty()) {
      vitals.tell(observer -> observer.renewed(subscriber, held.size()));
    }
    if (held.size() == sent.size()) {
      return;
    }
    Predicate<InFlight> renewed = Completer.among(sent, held);
    for (InFlight row : sent) {
      if (!renewed.test(row)) {
        missing(row);
      }
    }
  }

  /**
   * Not held any more: settled by ourselves since the statement was made up, or another owner's.
   */
  private void missing(InFlight row) {
    if (row.withdraw()) {
      row.lose();
      log.debug("[{}] {}: lease lost before its handler was started", subscriber, row);
      completer.abandon(row, Phase.RENEW);
    } else if (row.state() == State.RUNNING) {
      row.lose();
      log.warn(
          "[{}] {}: lease lost while its handler runs; what it decides changes nothing",
          subscriber,
          row);
      vitals.tell(observer -> observer.leaseLost(subscriber, row, Phase.RENEW));
    }
  }
}
