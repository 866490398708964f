package dev.outbox4j.internal.state;

import java.util.concurrent.atomic.AtomicInteger;

/** One permit for each handler that may run. Thread-safe. */
public final class Permits {
  private final int total;
  private final AtomicInteger free;

  public Permits(int total) {
    this.total = total;
    this.free = new AtomicInteger(total);
  }

  public boolean tryAcquire() {
    int now = free.get();
    while (now > 0) {
      if (free.compareAndSet(now, now - 1)) {
        return true;
      }
      now = free.get();
    }
    return false;
  }

  public void release() {
    free.incrementAndGet();
  }

  int free() {
    return free.get();
  }

  public int taken() {
    return total - free.get();
  }

  public int total() {
    return total;
  }
}
