package dev.outbox4j.internal;

import dev.outbox4j.FailureReason;
import dev.outbox4j.SubscriberEvents;
import dev.outbox4j.SubscriberEvents.Phase;
import dev.outbox4j.SubscriberHealth;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.LockSupport;
import java.util.function.Consumer;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Tells observers what happened, and keeps what they throw away from delivery. Thread-safe.
 *
 * <p>What a handler's own thread reports is told there, so only its message waits. What the
 * engine's threads report is told by a loop of its own, in order: an observer that blocks must hold
 * up no claim, no ack and no renewal. While observers fall behind, events beyond a bound in number
 * and in payload bytes are dropped and counted in the log.
 */
final class Events {
  private static final Logger log = LoggerFactory.getLogger(Events.class);
  private static final long LOG_EVERY = 1_000;
  private static final int MOST_WAITING = 10_000;
  private static final long LONGEST_WAIT = TimeUnit.MILLISECONDS.toNanos(10);
  private static final long NAP = TimeUnit.MICROSECONDS.toNanos(200);
  private static final long LONG = TimeUnit.HOURS.toNanos(1);

  /**
   * Something to tell.
   *
   * @param bytes of the payloads that are kept in memory until then
   */
  private record Telling(int events, long bytes, Runnable all) {}

  private final String subscriber;
  private final List<SubscriberEvents> observers;
  private final Loop loop;
  private final long mostWaitingBytes = ByteBudget.held();
  private final ConcurrentLinkedQueue<Telling> waiting = new ConcurrentLinkedQueue<>();
  private final AtomicInteger waitingCount = new AtomicInteger();
  private final AtomicLong waitingBytes = new AtomicLong();
  private final AtomicLong failures = new AtomicLong();
  private final AtomicLong dropped = new AtomicLong();
  private volatile boolean behind;

  Events(String subscriber, EngineThreads threads, List<SubscriberEvents> observers) {
    this.subscriber = subscriber;
    this.observers = observers;
    this.loop = new Loop(threads, "events", this::tellWaiting, this::report);
  }

  boolean isEmpty() {
    return observers.isEmpty();
  }

  void start() {
    if (!isEmpty()) {
      loop.start();
    }
  }

  /** Tells what waits and ends the thread; what is left at the deadline is dropped. */
  void stop(long deadline) {
    if (isEmpty()) {
      return;
    }
    loop.stop();
    if (!loop.join(deadline)) {
      log.warn(
          "[{}] an observer blocks; {} event(s) were not told", subscriber, waitingCount.get());
      loop.abandon();
    }
  }

  private long tellWaiting(boolean woken) {
    boolean last = loop.stopping();
    if (waitingCount.get() < MOST_WAITING / 2) {
      caughtUp();
    }
    for (Telling next = waiting.poll(); next != null; next = waiting.poll()) {
      int before = waitingCount.getAndAdd(-next.events());
      if (before > MOST_WAITING / 2 && before - next.events() <= MOST_WAITING / 2) {
        caughtUp();
      }
      try {
        next.all().run();
      } finally {
        waitingBytes.addAndGet(-next.bytes());
      }
    }
    return last ? Loop.END : LONG;
  }

  private void caughtUp() {
    behind = false;
    long lost = dropped.getAndSet(0);
    if (lost > 0) {
      log.warn("[{}] observers fell behind; {} event(s) were not told to them", subscriber, lost);
    }
  }

  private void report(Throwable failure) {
    log.warn("[{}] telling observers failed", subscriber, RedactedThrowable.of(failure));
  }

  /** Tells an event on the calling thread. */
  private void tell(Consumer<SubscriberEvents> event) {
    for (SubscriberEvents observer : observers) {
      try {
        event.accept(observer);
      } catch (Throwable thrown) { // user code: whatever it throws must not touch delivery
        if (failures.getAndIncrement() % LOG_EVERY == 0) {
          log.warn(
              "[{}] observer {} failed ({} failures so far); delivery goes on",
              subscriber,
              observer.getClass().getName(),
              failures.get(),
              RedactedThrowable.of(thrown));
        }
      }
    }
  }

  private void later(Consumer<SubscriberEvents> event, boolean mayWait) {
    if (!isEmpty()) {
      later(new Telling(1, 0, () -> tell(event)), mayWait);
    }
  }

  private void later(InFlight row, Consumer<SubscriberEvents> event, boolean mayWait) {
    if (!isEmpty()) {
      later(new Telling(1, row.bytes(), () -> tell(event)), mayWait);
    }
  }

  /** Hands events to the loop. Where observers are only slow, it waits a moment for them. */
  private void later(Telling telling, boolean mayWait) {
    if (isFull(telling) && !(mayWait && roomInTime(telling))) {
      dropped.addAndGet(telling.events());
      return;
    }
    waitingCount.addAndGet(telling.events());
    waitingBytes.addAndGet(telling.bytes());
    waiting.add(telling);
    loop.signal();
  }

  private boolean isFull(Telling telling) {
    long bytes = waitingBytes.get();
    return waitingCount.get() >= MOST_WAITING
        || (bytes > 0 && telling.bytes() > 0 && bytes + telling.bytes() > mostWaitingBytes);
  }

  private boolean roomInTime(Telling telling) {
    if (behind || loop.stopping()) {
      return false;
    }
    long until = System.nanoTime() + LONGEST_WAIT;
    while (isFull(telling)) {
      if (until - System.nanoTime() <= 0) {
        break;
      }
      LockSupport.parkNanos(this, NAP);
    }
    behind = true; // observers that are too slow are not waited for again until they caught up
    return !isFull(telling);
  }

  // on the calling thread: of the subscriber's life, and of a handler's own thread

  void started(SubscriberEvents.Setup setup, Supplier<SubscriberHealth> health) {
    tell(observer -> observer.started(subscriber, setup, health));
  }

  void stopped() {
    tell(observer -> observer.stopped(subscriber));
  }

  void dispatched(InFlight row, Duration age) {
    tell(observer -> observer.dispatched(subscriber, row, age));
  }

  void handled(InFlight row, Duration took, @Nullable Throwable failure) {
    tell(observer -> observer.handled(subscriber, row, took, failure));
  }

  // on the loop

  void claimed(int rows, Duration took) {
    later(observer -> observer.claimed(subscriber, rows, took), true);
  }

  /** Tells of a group at once: there may be very many. */
  void acked(List<InFlight> rows) {
    if (isEmpty() || rows.isEmpty()) {
      return;
    }
    long bytes = rows.stream().mapToLong(InFlight::bytes).sum();
    Runnable all = () -> rows.forEach(row -> tell(observer -> observer.acked(subscriber, row)));
    later(new Telling(rows.size(), bytes, all), true);
  }

  void retried(InFlight row, Duration delay) {
    later(row, observer -> observer.retried(subscriber, row, delay), true);
  }

  void rescheduled(InFlight row, Duration delay) {
    later(row, observer -> observer.rescheduled(subscriber, row, delay), true);
  }

  void deadLettered(InFlight row, FailureReason reason, boolean written) {
    later(row, observer -> observer.deadLettered(subscriber, row, reason, written), true);
  }

  void released(int rows) {
    later(observer -> observer.released(subscriber, rows), true);
  }

  void outcomeUnknown(InFlight row, Phase phase) {
    later(row, observer -> observer.outcomeUnknown(subscriber, row, phase), true);
  }

  void leaseLost(InFlight row, Phase phase) {
    later(row, observer -> observer.leaseLost(subscriber, row, phase), false);
  }

  void renewed(int rows) {
    later(observer -> observer.renewed(subscriber, rows), false);
  }

  void handlerTimedOut(InFlight row) {
    later(row, observer -> observer.handlerTimedOut(subscriber, row), false);
  }

  void storeFailed(String operation, Throwable cause) {
    later(observer -> observer.storeFailed(subscriber, operation, cause), false);
  }

  void listenerConnected(boolean again) {
    later(observer -> observer.listenerConnected(subscriber, again), false);
  }

  void listenerDisconnected(Throwable cause) {
    later(observer -> observer.listenerDisconnected(subscriber, cause), false);
  }

  void drainTimedOut(int left) {
    later(observer -> observer.drainTimedOut(subscriber, left), false);
  }
}
