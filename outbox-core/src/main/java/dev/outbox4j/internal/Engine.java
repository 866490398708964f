package dev.outbox4j.internal;

import dev.outbox4j.SubscriberHealth;
import dev.outbox4j.SubscriberState;
import java.time.Duration;
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

  /** What writing the last outcomes and giving rows back may take beyond the graceful timeout. */
  private static final long FLUSH_NANOS = TimeUnit.SECONDS.toNanos(2);

  /** What the renewal under way may take after that. */
  private static final long LAST_RENEWAL_NANOS = TimeUnit.SECONDS.toNanos(1);

  private final SubscriberSettings settings;
  private final String owner;
  private final GuardedEvents events;
  private final Vitals vitals;
  private final ConnectionBudget connections;
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
    this.connections = new ConnectionBudget(settings.claiming().lease());
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
            settings.claiming().lease(),
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

  /**
   * Drains; returns true if nothing was left behind. Each wait is bounded, so that a database which
   * does not answer cannot hold up the stop; what hangs then ends behind it.
   */
  boolean drain() {
    long deadline = System.nanoTime() + settings.stopping().gracefulTimeout().toNanos();
    fetcher.stop();
    LockSupport.unpark(fetcherThread); // a wake-up may be pending already, unheard in a pause
    HandBack handBack = handBack(buffer.close(), deadline + FLUSH_NANOS);
    Thread handBackThread = started(handBack);
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
    boolean handedBack = join(handBackThread, deadline + FLUSH_NANOS) && handBack.complete();
    keeper.stop();
    join(keeperThread, System.nanoTime() + LAST_RENEWAL_NANOS);
    listening.close();
    int left = registry.rows() + deadLetters.waiting();
    boolean clean = handedBack && quiet && flushed && left == 0;
    if (!clean) {
      log.warn(
          "[{}] drain ended with {} row(s) left to the end of their lease ({}); handlers finished: {},"
              + " outcomes written: {}, rows given back: {}, graceful timeout {}",
          settings.name(),
          left,
          settings.claiming().lease(),
          quiet,
          flushed,
          handedBack,
          settings.stopping().gracefulTimeout());
      if (!quiet || !flushed || !handedBack) {
        events.tell(observer -> observer.drainTimedOut(settings.name(), left));
      }
    }
    return clean;
  }

  private HandBack handBack(List<InFlight> unstarted, long deadline) {
    return new HandBack(
        settings,
        owner,
        connections,
        registry,
        vitals,
        new HandBack.Limits(fetcherThread, deadline),
        new HandBack.Rows(unstarted, buffer::close));
  }

  private Thread started(HandBack work) {
    Thread thread = new Thread(work, "outbox-" + settings.name() + "-hand-back");
    thread.setDaemon(true); // it keeps no process from ending: leases end by themselves
    try {
      thread.start();
    } catch (Error noThread) { // the machine has no more of them
      work.run();
    }
    return thread;
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
