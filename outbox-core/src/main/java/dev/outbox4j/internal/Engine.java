package dev.outbox4j.internal;

import dev.outbox4j.SubscriberHealth;
import dev.outbox4j.SubscriberState;
import dev.outbox4j.internal.Vitals.Operation;
import dev.outbox4j.spi.LeaseRef;
import dev.outbox4j.spi.OutboxStore;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * One run of a subscriber, from start to stop: makes the parts, owns their threads, and drains them
 * in order.
 */
final class Engine {
  private static final Logger log = LoggerFactory.getLogger(Engine.class);

  /** What writing the last outcomes may take beyond the graceful timeout. */
  private static final long FLUSH_NANOS = TimeUnit.SECONDS.toNanos(2);

  private final SubscriberSettings settings;
  private final String owner;
  private final GuardedEvents events;
  private final Vitals vitals;
  private final ConnectionBudget connections = new ConnectionBudget();
  private final InFlightRegistry registry = new InFlightRegistry();
  private final Buffer buffer = new Buffer();
  private final DeadLetterDesk deadLetters;
  private final Completer completer;
  private final WorkerPool pool;
  private final Listening listening;
  private final Fetcher fetcher;
  private final LeaseKeeper keeper;
  private final Thread fetcherThread;
  private final Thread completerThread;
  private final Thread keeperThread;

  Engine(SubscriberSettings settings, String owner) {
    this.settings = settings;
    this.owner = owner;
    this.events = new GuardedEvents(settings.name(), settings.observers());
    this.vitals = new Vitals(settings.name(), events);
    Wakeup wakeup = new Wakeup();
    this.deadLetters = new DeadLetterDesk(settings, connections, registry, vitals);
    this.completer =
        new Completer(
            settings,
            connections,
            registry,
            vitals,
            deadLetters,
            new Completer.Signals(
                () -> !buffer.isEmpty(),
                nanos -> fetcher().dueAgainIn(nanos),
                this::roomMayBeFree));
    OutcomeApplier outcomes = new OutcomeApplier(settings.name(), settings.failing());
    this.pool =
        new WorkerPool(
            settings.name(),
            settings.work(),
            buffer,
            new DeliveryTask(settings, outcomes, completer, events),
            this::roomMayBeFree);
    this.listening =
        new Listening(
            settings.name(), settings.queues(), settings.source(), events, vitals, wakeup);
    this.fetcher =
        new Fetcher(
            settings,
            owner,
            connections,
            new Fetcher.Holdings(registry, buffer, pool),
            vitals,
            listening,
            wakeup);
    this.keeper = new LeaseKeeper(settings, connections, registry, completer, outcomes, vitals);
    this.fetcherThread = new Thread(fetcher, "outbox-" + settings.name() + "-fetcher");
    this.completerThread = new Thread(completer, "outbox-" + settings.name() + "-completer");
    this.keeperThread = new Thread(keeper, "outbox-" + settings.name() + "-lease-keeper");
  }

  private Fetcher fetcher() {
    return fetcher;
  }

  private void roomMayBeFree() {
    fetcher.roomMayBeFree();
  }

  void start() {
    listening.open(settings.store().channel()); // first: if the source refuses, nothing has begun
    try {
      completerThread.start();
      keeperThread.start();
      fetcherThread.start();
    } catch (Error noThread) { // the machine has no more of them: end those that began
      drain();
      throw noThread;
    }
  }

  /** Drains; returns true if nothing was left behind. */
  boolean drain() {
    long deadline = System.nanoTime() + settings.stopping().gracefulTimeout().toNanos();
    fetcher.stop();
    LockSupport.unpark(fetcherThread); // a wake-up may be pending already, unheard in a pause
    List<InFlight> unstarted = buffer.close();
    boolean fetcherEnded = join(fetcherThread, deadline + FLUSH_NANOS);
    unstarted.addAll(buffer.close()); // what a claim under way brought in after all
    release(unstarted);
    boolean quiet = pool.awaitQuiet(deadline);
    if (!quiet) {
      completer.acksOnly();
    }
    pool.shutdown(!quiet);
    completer.stop();
    boolean flushed = join(completerThread, Math.max(deadline, System.nanoTime() + FLUSH_NANOS));
    if (!flushed) {
      completer.giveUp();
      completerThread.interrupt();
    }
    keeper.stop();
    join(keeperThread, System.nanoTime() + FLUSH_NANOS);
    listening.close();
    if (fetcherEnded && flushed) { // else a connection may still be in use
      forgetOwner();
    }
    int left = registry.rows() + deadLetters.waiting();
    boolean clean = fetcherEnded && quiet && flushed && left == 0;
    if (!clean) {
      log.warn(
          "[{}] drain ended with {} row(s) left to the end of their lease ({}); handlers finished: {},"
              + " outcomes written: {}, graceful timeout {}",
          settings.name(),
          left,
          settings.claiming().lease(),
          quiet,
          flushed,
          settings.stopping().gracefulTimeout());
      if (!quiet || !flushed) {
        events.tell(observer -> observer.drainTimedOut(settings.name(), left));
      }
    }
    return clean;
  }

  private void release(List<InFlight> unstarted) {
    List<InFlight> rows = new ArrayList<>();
    for (InFlight row : unstarted) {
      if (row.withdraw()) {
        rows.add(row);
      }
    }
    if (rows.isEmpty()) {
      return;
    }
    List<LeaseRef> leases = rows.stream().map(InFlight::lease).toList();
    try {
      int released = connections.spend(() -> settings.store().release(leases)).size();
      vitals.succeeded(Operation.RELEASE);
      events.tell(observer -> observer.released(settings.name(), released));
      log.debug("[{}] released {} of {} rows", settings.name(), released, rows.size());
    } catch (RuntimeException failure) {
      vitals.failed(Operation.RELEASE, failure);
      log.warn(
          "[{}] {} unstarted rows could not be released; they are claimable when their lease ends",
          settings.name(),
          rows.size());
    }
    rows.forEach(registry::settle);
  }

  private void forgetOwner() {
    OutboxStore store = settings.store();
    try {
      store.forget(owner);
    } catch (RuntimeException harmless) {
      log.debug("[{}] the sleeper's announcement runs out by itself", settings.name(), harmless);
    }
  }

  private static boolean join(Thread thread, long deadline) {
    boolean interrupted = false;
    try {
      while (thread.isAlive()) {
        long left = deadline - System.nanoTime();
        if (left <= 0) {
          return false;
        }
        try {
          TimeUnit.NANOSECONDS.timedJoin(thread, left);
        } catch (InterruptedException e) {
          interrupted = true; // the drain is bounded by its deadlines and goes on
        }
      }
      return true;
    } finally {
      if (interrupted) {
        Thread.currentThread().interrupt();
      }
    }
  }

  SubscriberHealth health(SubscriberState state) {
    Vitals.Failure failure = vitals.lastFailure();
    return new SubscriberHealth(
        settings.name(),
        state,
        vitals.lastClaimAt(),
        failure == null ? null : failure.at(),
        failure == null ? null : failure.text(),
        vitals.failing(),
        listening.state(),
        registry.rows(),
        pool.running(),
        oldest(),
        deadLetters.waiting());
  }

  private Duration oldest() {
    long now = System.nanoTime();
    long oldest = 0;
    for (LeaseBatch batch : registry.batches()) {
      oldest = Math.max(oldest, now - batch.claimedAt());
    }
    return Duration.ofNanos(oldest);
  }

  GuardedEvents events() {
    return events;
  }
}
