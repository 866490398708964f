package dev.outbox4j.internal.state;

import dev.outbox4j.FailureReason;
import dev.outbox4j.SubscriberEvents;
import dev.outbox4j.SubscriberEvents.Phase;
import dev.outbox4j.SubscriberHealth;
import dev.outbox4j.internal.ByteBudget;
import dev.outbox4j.internal.EngineThreads;
import dev.outbox4j.internal.Loop;
import dev.outbox4j.internal.RedactedThrowable;
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
public final class Events {
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

  public Events(String subscriber, EngineThreads threads, List<SubscriberEvents> observers) {
    this.subscriber = subscriber;
    this.observers = observers;
    this.loop = new Loop(threads, "events", this::tellWaiting, this::report);
  }

  public boolean isEmpty() {
    return observers.isEmpty();
  }

  public void start() {
    if (!isEmpty()) {
      loop.start();
    }
  }

  /** Tells what waits and ends the thread; what is left at the deadline is dropped. */
  public void stop(long deadline) {
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

  private void later(HeldRow row, Consumer<SubscriberEvents> event, boolean mayWait) {
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

  public void started(SubscriberEvents.Setup setup, Supplier<SubscriberHealth> health) {
    tell(observer -> observer.started(subscriber, setup, health));
  }

  public void stopped() {
    tell(observer -> observer.stopped(subscriber));
  }

  public void dispatched(HeldRow row, Duration age) {
    tell(observer -> observer.dispatched(subscriber, row.delivery(), age));
  }

  public void handled(HeldRow row, Duration took, @Nullable Throwable failure) {
    tell(observer -> observer.handled(subscriber, row.delivery(), took, failure));
  }

  // on the loop

  public void claimed(int rows, Duration took) {
    later(observer -> observer.claimed(subscriber, rows, took), true);
  }

  /** Tells of a group at once: there may be very many. */
  public void acked(List<HeldRow> rows) {
    if (isEmpty() || rows.isEmpty()) {
      return;
    }
    long bytes = rows.stream().mapToLong(HeldRow::bytes).sum();
    Runnable all =
        () -> rows.forEach(row -> tell(observer -> observer.acked(subscriber, row.delivery())));
    later(new Telling(rows.size(), bytes, all), true);
  }

  public void retried(HeldRow row, Duration delay) {
    later(row, observer -> observer.retried(subscriber, row.delivery(), delay), true);
  }

  public void rescheduled(HeldRow row, Duration delay) {
    later(row, observer -> observer.rescheduled(subscriber, row.delivery(), delay), true);
  }

  public void deadLettered(HeldRow row, FailureReason reason, boolean written) {
    later(
        row, observer -> observer.deadLettered(subscriber, row.delivery(), reason, written), true);
  }

  public void released(int rows) {
    later(observer -> observer.released(subscriber, rows), true);
  }

  public void outcomeUnknown(HeldRow row, Phase phase) {
    later(row, observer -> observer.outcomeUnknown(subscriber, row.delivery(), phase), true);
  }

  public void leaseLost(HeldRow row, Phase phase) {
    later(row, observer -> observer.leaseLost(subscriber, row.delivery(), phase), false);
  }

  public void renewed(int rows) {
    later(observer -> observer.renewed(subscriber, rows), false);
  }

  public void handlerTimedOut(HeldRow row) {
    later(row, observer -> observer.handlerTimedOut(subscriber, row.delivery()), false);
  }

  void storeFailed(String operation, Throwable cause) {
    later(observer -> observer.storeFailed(subscriber, operation, cause), false);
  }

  public void listenerConnected(boolean again) {
    later(observer -> observer.listenerConnected(subscriber, again), false);
  }

  public void listenerDisconnected(Throwable cause) {
    later(observer -> observer.listenerDisconnected(subscriber, cause), false);
  }

  public void drainTimedOut(int left) {
    later(observer -> observer.drainTimedOut(subscriber, left), false);
  }
}
