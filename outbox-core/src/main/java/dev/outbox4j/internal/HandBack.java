package dev.outbox4j.internal;

import dev.outbox4j.internal.Vitals.Operation;
import dev.outbox4j.spi.LeaseRef;
import dev.outbox4j.spi.OutboxStore;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.locks.LockSupport;
import java.util.function.Supplier;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Gives back what no handler has begun when a subscriber stops, and takes its announcement of sleep
 * back. On a thread of its own: a database that does not answer must not hold up the stop, and what
 * a claim under way brings in later is given back behind it.
 */
final class HandBack implements Runnable {
  private static final Logger log = LoggerFactory.getLogger(HandBack.class);

  private final String subscriber;
  private final OutboxStore store;
  private final String owner;
  private final ConnectionBudget connections;
  private final InFlightRegistry registry;
  private final Vitals vitals;
  private final Thread fetcher;
  private final long deadline;
  private final List<InFlight> unstarted;
  private final Supplier<List<InFlight>> latecomers;
  private final Backoff backoff = new Backoff();
  private volatile boolean complete = true;

  /** The rows not begun now, and where to look for more once the fetcher has ended. */
  record Rows(List<InFlight> unstarted, Supplier<List<InFlight>> latecomers) {}

  /** Whom to wait for, and until when a release that failed is tried again. */
  record Limits(Thread fetcher, long deadline) {}

  HandBack(
      SubscriberSettings settings,
      String owner,
      ConnectionBudget connections,
      InFlightRegistry registry,
      Vitals vitals,
      Limits limits,
      Rows rows) {
    this.subscriber = settings.name();
    this.store = settings.store();
    this.owner = owner;
    this.connections = connections;
    this.registry = registry;
    this.vitals = vitals;
    this.fetcher = limits.fetcher();
    this.deadline = limits.deadline();
    this.unstarted = rows.unstarted();
    this.latecomers = rows.latecomers();
  }

  @Override
  public void run() {
    release(unstarted);
    try {
      fetcher.join(); // bounded by its statement
    } catch (InterruptedException e) {
      return; // nobody does; the rows are claimable when their lease ends
    }
    release(latecomers.get());
    forgetOwner();
  }

  /** Tells whether nothing was left to the end of its lease; read it when the thread has ended. */
  boolean complete() {
    return complete;
  }

  private void release(List<InFlight> rows) {
    List<InFlight> withdrawn = new ArrayList<>();
    for (InFlight row : rows) {
      if (row.withdraw()) {
        withdrawn.add(row);
      }
    }
    if (withdrawn.isEmpty()) {
      return;
    }
    List<LeaseRef> leases = withdrawn.stream().map(InFlight::lease).toList();
    while (!release(leases, withdrawn)) {
      long pause = backoff.nextNanos();
      if (deadline - System.nanoTime() <= pause || Thread.currentThread().isInterrupted()) {
        complete = false; // still counted as held, since they are
        log.warn(
            "[{}] {} unstarted rows could not be released; they are claimable when their lease ends",
            subscriber,
            withdrawn.size());
        return;
      }
      LockSupport.parkNanos(this, pause);
    }
    backoff.reset();
  }

  /** Sends one statement; false if it failed and may do better later. */
  private boolean release(List<LeaseRef> leases, List<InFlight> withdrawn) {
    try {
      int released = connections.spend(() -> store.release(leases)).size();
      vitals.succeeded(Operation.RELEASE);
      vitals.tell(observer -> observer.released(subscriber, released));
      log.debug("[{}] released {} of {} rows", subscriber, released, withdrawn.size());
    } catch (RuntimeException | Error failure) {
      vitals.failed(Operation.RELEASE, failure);
      return false;
    }
    withdrawn.forEach(registry::settle);
    return true;
  }

  private void forgetOwner() {
    try {
      connections.spend(
          () -> {
            store.forget(owner);
            return owner;
          });
    } catch (RuntimeException harmless) {
      log.debug("[{}] the sleeper's announcement runs out by itself", subscriber, harmless);
    }
  }
}
