package dev.outbox4j.lock;

import dev.outbox4j.internal.EngineThreads;
import java.util.concurrent.Future;
import java.util.concurrent.ScheduledThreadPoolExecutor;
import java.util.concurrent.SynchronousQueue;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;

/**
 * The real clock, one thread for what is due, and one for each statement that is under way. All are
 * daemons, and end a while after they had nothing to do.
 */
final class LeaseThreads implements LeaseTime {
  private static final long KEPT_SECONDS = 10;

  private final ScheduledThreadPoolExecutor due;
  private final ThreadPoolExecutor others;

  LeaseThreads(EngineThreads threads) {
    due = new ScheduledThreadPoolExecutor(1, task -> threads.newDaemon(task, "deadlines"));
    due.setKeepAliveTime(KEPT_SECONDS, TimeUnit.SECONDS);
    due.allowCoreThreadTimeOut(true);
    due.setRemoveOnCancelPolicy(true);
    others =
        new ThreadPoolExecutor(
            0,
            Integer.MAX_VALUE,
            KEPT_SECONDS,
            TimeUnit.SECONDS,
            new SynchronousQueue<>(),
            task -> threads.newDaemon(task, "renewal"));
  }

  @Override
  public long nanos() {
    return System.nanoTime();
  }

  @Override
  public Alarm at(long nanos, Runnable task) {
    Future<?> alarm =
        due.schedule(task, Math.max(0, nanos - System.nanoTime()), TimeUnit.NANOSECONDS);
    return () -> alarm.cancel(false);
  }

  @Override
  public void run(Runnable task) {
    try {
      others.execute(task);
    } catch (OutOfMemoryError noThread) {
      due.execute(task); // late is better than never
    }
  }
}
