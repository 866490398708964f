package dev.outbox4j.internal;

import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.locks.LockSupport;
import org.jspecify.annotations.Nullable;

/**
 * The one pending wake-up of a thread: signals that come while it is awake, or in a crowd, collapse
 * into one. Signal from any thread; wait on the owner's only.
 */
final class Wakeup {
  private final AtomicBoolean pending = new AtomicBoolean();
  private volatile @Nullable Thread owner;

  /** Makes the calling thread the owner. */
  void own() {
    owner = Thread.currentThread();
  }

  void signal() {
    if (pending.compareAndSet(false, true)) {
      LockSupport.unpark(owner);
    }
  }

  /** Waits for a signal at most so long; returns true if there was one. */
  boolean await(long nanos) {
    long until = System.nanoTime() + nanos;
    while (!pending.get()) {
      long left = until - System.nanoTime();
      if (left <= 0) {
        return false;
      }
      LockSupport.parkNanos(this, left);
      Thread.interrupted(); // whoever interrupts an engine thread means: look again
    }
    return pending.compareAndSet(true, false);
  }
}
