package dev.outbox4j.internal;

import java.util.concurrent.atomic.AtomicInteger;

/** One permit for each handler that may run. Thread-safe. */
final class Permits {
  private final int total;
  private final AtomicInteger free;

  Permits(int total) {
    this.total = total;
    this.free = new AtomicInteger(total);
  }

  boolean tryAcquire() {
    int now = free.get();
    while (now > 0) {
      if (free.compareAndSet(now, now - 1)) {
        return true;
      }
      now = free.get();
    }
    return false;
  }

  void release() {
    free.incrementAndGet();
  }

  int free() {
    return free.get();
  }

  int taken() {
    return total - free.get();
  }

  int total() {
    return total;
  }
}
