package dev.outbox4j.lock;

import java.time.Duration;
import java.util.Comparator;
import java.util.PriorityQueue;

/** Time that goes by when a test says so. What is due, and what takes long, is done by the test. */
final class ManualTime implements LeaseTime {
  private final PriorityQueue<Due> due =
      new PriorityQueue<>(Comparator.comparingLong(Due::at).thenComparingLong(Due::number));
  private long now;
  private long numbers;

  private record Due(long at, long number, Runnable task) {}

  /** {@return how much time has gone by} */
  Duration now() {
    return Duration.ofNanos(now);
  }

  /** Lets time go by, and does what is due meanwhile, each at its time. */
  void advance(Duration by) {
    long until = now + by.toNanos();
    for (Due next = due.peek(); next != null && next.at() <= until; next = due.peek()) {
      due.remove();
      now = Math.max(now, next.at());
      next.task().run();
    }
    now = Math.max(now, until);
  }

  @Override
  public long nanos() {
    return now;
  }

  @Override
  public Alarm at(long nanos, Runnable task) {
    Due alarm = new Due(nanos, numbers++, task);
    due.add(alarm);
    return () -> due.remove(alarm);
  }

  @Override
  public void run(Runnable task) {
    task.run();
  }
}
