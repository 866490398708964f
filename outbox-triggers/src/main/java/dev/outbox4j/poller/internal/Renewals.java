package dev.outbox4j.poller.internal;

import dev.outbox4j.internal.EngineThreads;
import java.util.concurrent.Future;
import java.util.concurrent.ScheduledThreadPoolExecutor;
import java.util.concurrent.TimeUnit;

/**
 * The threads on which leases are renewed, at most one for each poller, so that a statement that
 * hangs delays no other poller's. All are daemons, and end a while after they had nothing to do.
 */
final class Renewals {
  private static final long KEPT_SECONDS = 10;

  private final ScheduledThreadPoolExecutor executor;

  Renewals(EngineThreads threads, int pollers) {
    executor = new ScheduledThreadPoolExecutor(pollers, task -> threads.newDaemon(task, "renewal"));
    executor.setKeepAliveTime(KEPT_SECONDS, TimeUnit.SECONDS);
    executor.allowCoreThreadTimeOut(true);
    executor.setRemoveOnCancelPolicy(true);
  }

  Future<?> after(long nanos, Runnable task) {
    return executor.schedule(task, nanos, TimeUnit.NANOSECONDS);
  }
}
