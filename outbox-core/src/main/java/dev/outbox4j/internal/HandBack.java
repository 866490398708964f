package dev.outbox4j.internal;

import dev.outbox4j.internal.Vitals.Operation;
import dev.outbox4j.spi.LeaseRef;
import dev.outbox4j.spi.OutboxStore;
import java.util.ArrayList;
import java.util.List;
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
  private final List<InFlight> unstarted;
  private final Supplier<List<InFlight>> latecomers;

  /** The rows not begun now, and where to look for more once the fetcher has ended. */
  record Rows(List<InFlight> unstarted, Supplier<List<InFlight>> latecomers) {}

  HandBack(
      SubscriberSettings settings,
      String owner,
      ConnectionBudget connections,
      InFlightRegistry registry,
      Vitals vitals,
      Thread fetcher,
      Rows rows) {
    this.subscriber = settings.name();
    this.store = settings.store();
    this.owner = owner;
    this.connections = connections;
    this.registry = registry;
    this.vitals = vitals;
    this.fetcher = fetcher;
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
    try {
      int released = connections.spend(() -> store.release(leases)).size();
      vitals.succeeded(Operation.RELEASE);
      vitals.tell(observer -> observer.released(subscriber, released));
      log.debug("[{}] released {} of {} rows", subscriber, released, withdrawn.size());
    } catch (RuntimeException failure) {
      vitals.failed(Operation.RELEASE, failure);
      log.warn(
          "[{}] {} unstarted rows could not be released; they are claimable when their lease ends",
          subscriber,
          withdrawn.size());
    }
    withdrawn.forEach(registry::settle);
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
