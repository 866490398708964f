package dev.outbox4j.lock;

import dev.outbox4j.spi.NotificationSource;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;

/** Wakes who waits for a lock when it is released, in whichever process. Thread-safe. */
final class Releases implements NotificationSource.Listener {
  private final String application;
  private final Map<String, Set<Waiter>> waiters = new ConcurrentHashMap<>();
  private volatile boolean connected;

  Releases(String application) {
    this.application = application;
  }

  /** What is sent when a lock is released. */
  static String payload(String application, String name) {
    return application + '\n' + name;
  }

  /** Someone who waits; wakes that come before it does are not lost. */
  final class Waiter implements AutoCloseable {
    private final String name;
    private final Semaphore wakes = new Semaphore(0);

    private Waiter(String name) {
      this.name = name;
    }

    /** Waits for a wake, at most for a while; returns whether there was one. */
    boolean await(long nanos) throws InterruptedException {
      boolean woken = wakes.tryAcquire(nanos, TimeUnit.NANOSECONDS);
      if (woken) {
        wakes.drainPermits();
      }
      return woken;
    }

    @Override
    public void close() {
      waiters.computeIfPresent(
          name,
          (key, all) -> {
            all.remove(this);
            return all.isEmpty() ? null : all;
          });
    }
  }

  Waiter waiter(String name) {
    Waiter waiter = new Waiter(name);
    waiters.compute(
        name,
        (key, all) -> {
          Set<Waiter> with = all == null ? ConcurrentHashMap.newKeySet() : all;
          with.add(waiter);
          return with;
        });
    return waiter;
  }

  int waiting() {
    return waiters.values().stream().mapToInt(Set::size).sum();
  }

  boolean connectedNow() {
    return connected;
  }

  /** Wakes all, who look for themselves. */
  void wakeAll() {
    waiters.values().forEach(all -> all.forEach(waiter -> waiter.wakes.release()));
  }

  @Override
  public void connected() {
    connected = true;
    wakeAll(); // what was released before went unheard
  }

  @Override
  public void notified(String payload) {
    int end = payload.indexOf('\n');
    if (end >= 0 && payload.substring(0, end).equals(application)) {
      waiters
          .getOrDefault(payload.substring(end + 1), Set.of())
          .forEach(waiter -> waiter.wakes.release());
    }
  }

  @Override
  public void disconnected(Throwable cause) {
    connected = false;
    Locks.log.debug("locks: not listening", cause);
  }
}
