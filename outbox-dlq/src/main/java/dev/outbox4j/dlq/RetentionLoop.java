package dev.outbox4j.dlq;

import java.time.Duration;
import java.util.Collections;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;
import java.util.function.LongSupplier;
import java.util.function.Supplier;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** One start of a retention: the daemon thread that runs it, until it is stopped. */
final class RetentionLoop {
  private static final Logger log = LoggerFactory.getLogger(DeadLetterRetention.class);
  private static final Duration STOP_LIMIT = Duration.ofSeconds(5);
  private static final Duration AGAIN = Duration.ofMinutes(5);

  /** One that does not get done takes at most a quarter of the time. */
  private static final int REST_PER_TRY = 3;

  private final String name;
  private final Duration every;
  private final Supplier<Optional<DeadLetterRetentionReport>> run;
  private final LongSupplier nanoTime;
  private final Thread thread;
  private final CountDownLatch stopping = new CountDownLatch(1);

  RetentionLoop(String name, Duration every, Supplier<Optional<DeadLetterRetentionReport>> run) {
    this(name, every, run, System::nanoTime);
  }

  RetentionLoop(
      String name,
      Duration every,
      Supplier<Optional<DeadLetterRetentionReport>> run,
      LongSupplier nanoTime) {
    this.name = name;
    this.every = every;
    this.run = run;
    this.nanoTime = nanoTime;
    this.thread = new Thread(null, this::loop, "outbox-" + name + "-retention", 0, false);
    thread.setDaemon(true);
  }

  void start() {
    thread.start();
  }

  boolean isAlive() {
    return thread.isAlive();
  }

  /** Interrupts it, so that a pause or a run of many statements ends. */
  void stop() {
    stopping.countDown();
    thread.interrupt();
    if (Thread.currentThread() == thread) {
      return;
    }
    try {
      thread.join(STOP_LIMIT.toMillis());
      if (thread.isAlive()) {
        log.info(
            "[{}] the retention did not end within {} s; it ends when the pool or the database"
                + " answers",
            name,
            STOP_LIMIT.toSeconds());
      }
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }

  private void loop() {
    while (stopping.getCount() > 0) {
      Duration next = step();
      // processes that wait for the same instant come a little apart
      long nanos = next.toNanos() + ThreadLocalRandom.current().nextLong(1 + next.toNanos() / 10);
      try {
        if (stopping.await(nanos, TimeUnit.NANOSECONDS)) {
          return;
        }
      } catch (InterruptedException e) {
        log.debug("[{}] interrupted while waiting", name); // it ends by stop()
      }
    }
  }

  /** One try; says when the next one is. Whoever has the turn now may die in it. */
  Duration step() {
    long begin = nanoTime.getAsLong();
    try {
      Optional<DeadLetterRetentionReport> report = run.get();
      report.ifPresent(this::tell);
      return report.isPresent() && report.get().nothingIsLeft() ? every : soon(begin);
    } catch (Throwable failure) { // whatever a driver or a pool throws, it goes on
      Duration soon = soon(begin);
      if (stopping.getCount() > 0) {
        warn(failure, soon);
      }
      return soon;
    }
  }

  private Duration soon(long begin) {
    Duration rest = Duration.ofNanos(nanoTime.getAsLong() - begin).multipliedBy(REST_PER_TRY);
    return Collections.min(List.of(every, Collections.max(List.of(AGAIN, rest))));
  }

  private void warn(Throwable failure, Duration soon) {
    try {
      log.warn("[{}] the retention failed, and is tried again in {}", name, soon, failure);
    } catch (RuntimeException | Error worse) { // such as no memory even for that
      return;
    }
  }

  private void tell(DeadLetterRetentionReport report) {
    report.problems().forEach(problem -> log.warn("[{}] {}", name, problem));
    log.info(
        "[{}] retention: {} letters deleted, {} left alone; partitions created {}, dropped {}, held"
            + " by unresolved letters {}",
        name,
        report.deleted(),
        report.leftAlone(),
        report.created(),
        report.dropped(),
        report.held());
  }
}
