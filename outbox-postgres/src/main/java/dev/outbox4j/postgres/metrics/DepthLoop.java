package dev.outbox4j.postgres.metrics;

import dev.outbox4j.postgres.OutboxTable;
import dev.outbox4j.postgres.internal.SharedDepths;
import dev.outbox4j.postgres.internal.SharedDepths.Look;
import io.micrometer.core.instrument.MeterRegistry;
import java.time.Duration;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** One start of the metrics: the daemon thread that looks once an interval, until it is stopped. */
final class DepthLoop {
  private static final Logger log = LoggerFactory.getLogger(OutboxDepthMetrics.class);
  private static final Duration STOP_LIMIT = Duration.ofSeconds(2);

  /** Who fails to count so often in a row lets another process try. */
  private static final int MOST_FAILURES = 2;

  private final MeterRegistry registry;
  private final OutboxTable table;
  private final SharedDepths depths;
  private final DepthGauges gauges;
  private final long interval;
  private final Thread thread;
  private final CountDownLatch stopping = new CountDownLatch(1);

  // confined to the thread
  private final DepthLog said;
  private int failures;

  DepthLoop(
      MeterRegistry registry,
      OutboxTable table,
      SharedDepths depths,
      DepthGauges gauges,
      Duration interval,
      @Nullable ClassLoader loader) {
    this.registry = registry;
    this.table = table;
    this.depths = depths;
    this.gauges = gauges;
    this.interval = interval.toNanos();
    this.said = new DepthLog(table);
    this.thread = new Thread(null, this::run, "outbox-" + table + "-depths", 0, false);
    thread.setDaemon(true);
    thread.setContextClassLoader(loader);
  }

  /** Shows whether this process counts, and begins to look. */
  void start() {
    gauges.open();
    try {
      thread.start();
    } catch (Throwable noThread) {
      gauges.close();
      throw noThread;
    }
  }

  boolean isAlive() {
    return thread.isAlive();
  }

  /** Removes the gauges at once, and waits up to 2 s for the thread to end. */
  void stop() {
    stopping.countDown();
    gauges.close();
    if (Thread.currentThread() == thread) {
      return;
    }
    try {
      thread.join(STOP_LIMIT.toMillis());
      if (thread.isAlive()) {
        log.info(
            "[{}] the thread that counts depths did not end within {} s; it ends when the pool or"
                + " the database answers",
            table,
            STOP_LIMIT.toSeconds());
      }
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }

  private boolean stopped() {
    return stopping.getCount() == 0;
  }

  private void run() {
    try {
      while (!stopped() && !registryClosed()) {
        pause(step());
      }
      giveBack();
    } finally {
      gauges.close();
    }
  }

  private boolean registryClosed() {
    if (registry.isClosed()) {
      log.info("[{}] the registry is closed: depths are not counted for it any more", table);
      return true;
    }
    return false;
  }

  /** Looks, and tells how many nanoseconds to wait before the next look. */
  private long step() {
    long begunAt = System.nanoTime();
    try {
      Look look = depths.look(this::stopped);
      if (stopped()) {
        return 0;
      }
      failures = 0;
      if (look.depths() == null) {
        gauges.clear();
        said.othersCount();
        return untilVacant(look.heldFor());
      }
      gauges.show(look.depths(), begunAt + depths.lease().toNanos());
      said.works();
      return untilNext(begunAt);
    } catch (Throwable failure) { // whatever a driver, a pool or a registry throws, it goes on
      return survive(failure, begunAt);
    }
  }

  private long survive(Throwable failure, long begunAt) {
    try {
      failures++;
      said.failed(failure, depths.counting());
      if (failures >= MOST_FAILURES && depths.counting()) {
        depths.forgo(); // which runs out in two intervals, and then others come first
        return 3 * interval;
      }
    } catch (RuntimeException | Error worse) { // such as no memory even for that
      return interval;
    }
    return untilNext(begunAt);
  }

  private long untilNext(long begunAt) {
    return Math.max(interval / 4, interval - (System.nanoTime() - begunAt));
  }

  /** Processes that wait for the same instant come a little apart. */
  private long untilVacant(Duration heldFor) {
    long vacant = heldFor.isZero() ? interval : Math.min(interval, heldFor.toNanos());
    return vacant + ThreadLocalRandom.current().nextLong(1 + interval / 10);
  }

  private void pause(long nanos) {
    long until = System.nanoTime() + nanos;
    for (long left = nanos; left > 0 && !stopped(); left = until - System.nanoTime()) {
      try {
        if (stopping.await(left, TimeUnit.NANOSECONDS)) {
          return;
        }
      } catch (InterruptedException e) { // nobody has a reason to; the thread ends by stop()
        log.debug("[{}] interrupted while waiting", table);
      }
    }
  }

  private void giveBack() {
    try {
      depths.giveBack();
    } catch (RuntimeException | Error e) { // such as a pool that is closed: the lease runs out
      log.debug("[{}] the lease to count depths was not given back", table, e);
    }
  }
}
