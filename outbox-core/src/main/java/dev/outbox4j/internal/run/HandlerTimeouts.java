package dev.outbox4j.internal.run;

import dev.outbox4j.internal.RedactedThrowable;
import dev.outbox4j.internal.settings.SubscriberSettings;
import dev.outbox4j.internal.settle.Completer;
import dev.outbox4j.internal.state.ClaimedBatch;
import dev.outbox4j.internal.state.HandlerRun;
import dev.outbox4j.internal.state.HeldRow;
import dev.outbox4j.internal.state.Settlement;
import dev.outbox4j.internal.state.Shared;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicInteger;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Ends handlers that run past their timeout, and breaks off what those wait for that have lost
 * their lease, or whose transaction does not end. The lease keeper finds them; the rest is done on
 * other threads, since the retry policy, the exception renderer and what depends on a stage are
 * user code and may block.
 */
public final class HandlerTimeouts {
  private static final Logger log = LoggerFactory.getLogger(HandlerTimeouts.class);

  private static final int MOST_THREADS = 32;

  /** How long an interrupt waits until what the handler waits for is broken off. */
  private static final long PATIENCE_NANOS = TimeUnit.SECONDS.toNanos(1);

  private static final Settlement WITHOUT_POLICY =
      new Settlement.Retry(Duration.ofSeconds(30), "the handler ran longer than handlerTimeout");

  private final Shared shared;
  private final Completer completer;
  private final OutcomeApplier outcomes;
  private final @Nullable Duration timeout;
  private final AtomicInteger deciding = new AtomicInteger();
  private final ExecutorService deciders;

  /** They end transactions, and run no user code. */
  private final ExecutorService breakers;

  /** Others than end transactions: what depends on a stage runs on them, and may never end. */
  private final ExecutorService cancellers;

  /** Runs that were taken away, until their handlers end. */
  private final Set<HandlerRun> overdue = ConcurrentHashMap.newKeySet();

  /** Runs that were taken away a moment ago, the oldest first; confined to the lease keeper. */
  private final Deque<Expiring> expiring = new ArrayDeque<>();

  private record Expiring(HandlerRun run, long since) {}

  public HandlerTimeouts(
      SubscriberSettings settings, Shared shared, Completer completer, OutcomeApplier outcomes) {
    this.shared = shared;
    this.completer = completer;
    this.outcomes = outcomes;
    this.timeout = settings.work().handlerTimeout();
    int threads = Math.min(MOST_THREADS, settings.work().workers());
    this.deciders = pool(threads, "handler-timeout");
    this.breakers = pool(threads, "handler-abort");
    this.cancellers = pool(threads, "handler-cancel");
  }

  private ExecutorService pool(int threads, String name) {
    return Executors.newFixedThreadPool(threads, task -> shared.threads().newDaemon(task, name));
  }

  /** Returns how fine the timeout is to be watched, or a day if there is none. */
  public long finest() {
    return timeout == null ? TimeUnit.DAYS.toNanos(1) : timeout.toNanos() / 8;
  }

  /**
   * Returns the run that began first of those whose handlers go on past their time; or null. Its
   * row is settled, so nothing else names it. Thread-safe.
   */
  public @Nullable HandlerRun oldestOverdue() {
    HandlerRun oldest = null;
    for (HandlerRun run : overdue) {
      if (run.isOverdue() && (oldest == null || run.startedAt() - oldest.startedAt() < 0)) {
        oldest = run;
      }
    }
    return oldest;
  }

  /** Returns how many runs were taken away and are not decided yet. */
  public int deciding() {
    return deciding.get();
  }

  public void endOverdue(long now) {
    overdue.removeIf(run -> !run.isOverdue());
    while (!expiring.isEmpty() && now - expiring.getFirst().since() > PATIENCE_NANOS) {
      expiring.removeFirst().run().interrupt(); // if that has not come yet
    }
    for (ClaimedBatch batch : shared.registry().batches()) {
      for (int i = 0; i < batch.size(); i++) {
        HeldRow row = batch.at(i);
        HandlerRun run = row == null ? null : row.run();
        if (row == null || run == null) {
          continue;
        }
        if (run.endsTooLate(now)) {
          breakOff(run);
        }
        if (!run.isRunning()) {
          continue;
        }
        if (timeout != null && !run.isWaiting() && now - run.startedAt() > timeout.toNanos()) {
          expire(run, now);
        } else if (row.knownLost() && !run.givenUp) {
          giveUp(run);
        }
      }
    }
  }

  /** Breaks off what has no thread to be interrupted, and would commit behind a stop. */
  public void endWithStop() {
    for (ClaimedBatch batch : shared.registry().batches()) {
      for (int i = 0; i < batch.size(); i++) {
        HeldRow row = batch.at(i);
        HandlerRun run = row == null ? null : row.run();
        if (run != null && run.isEndedByStop()) {
          breakOff(run);
        }
      }
    }
  }

  /** Breaks off what a run waits for that has lost all its leases. */
  private void giveUp(HandlerRun run) {
    if (!run.rows().stream().allMatch(HeldRow::knownLost)) {
      return;
    }
    run.givenUp = true;
    breakOff(run);
  }

  private void expire(HandlerRun run, long now) {
    deciding.incrementAndGet(); // before the handler's permit can be free
    boolean handedOn = false;
    try {
      if (run.expire()) {
        overdue.add(run);
        letGo(run);
        StackTraceElement[] place = run.place(); // before the interrupt moves it
        try {
          deciders.execute(() -> decide(run, place));
        } catch (RuntimeException | Error noThread) { // the machine has no more of them
          Map<HeldRow, Settlement> settlements = new LinkedHashMap<>();
          run.rows().forEach(row -> settlements.put(row, WITHOUT_POLICY));
          end(run, settlements);
        }
        handedOn = true;
        interrupt(run, now);
      }
    } finally {
      if (!handedOn) {
        deciding.decrementAndGet();
      }
    }
  }

  private void interrupt(HandlerRun run, long now) {
    if (run.isBrokenOffFirst()) {
      expiring.addLast(new Expiring(run, now));
      breakOff(run, run::interrupt);
    } else {
      run.interrupt();
    }
  }

  private void decide(HandlerRun run, StackTraceElement[] place) {
    Map<HeldRow, Settlement> settlements = new LinkedHashMap<>();
    try {
      boolean alone = run.rows().size() == 1;
      for (HeldRow row : run.rows()) {
        settlements.put(row, settlement(row, alone, place));
        shared.events().handlerTimedOut(row); // before what comes of it
      }
    } finally {
      run.rows().forEach(row -> settlements.putIfAbsent(row, WITHOUT_POLICY));
      end(run, settlements);
      run.forget();
    }
  }

  /**
   * Whoever was to handle what waits may never come back; nor may the policy that is asked next.
   */
  private void letGo(HandlerRun run) {
    for (HeldRow row : run.behind()) {
      row.decide(BatchTask.UNTRIED);
      completer.complete(row);
    }
  }

  private Settlement settlement(HeldRow row, boolean alone, StackTraceElement[] place) {
    try {
      TimeoutException failure =
          new TimeoutException(
              "the handler ran longer than handlerTimeout "
                  + timeout
                  + " and was interrupted; look at what it waits for, or set a longer handlerTimeout");
      if (place.length > 0) {
        failure.setStackTrace(place); // what it waited for is what people look for
      }
      return alone ? outcomes.timedOut(row, failure) : outcomes.timedOutOnSeveral(row, failure);
    } catch (Throwable broken) { // the row must not hang
      log.error(
          "[{}] the outcome of {} could not be decided; it is retried",
          shared.subscriber(),
          row,
          RedactedThrowable.of(broken));
      return WITHOUT_POLICY;
    }
  }

  /** Hands the outcomes on, and only then frees the permit: a drain takes that for a sign. */
  private void end(HandlerRun run, Map<HeldRow, Settlement> settlements) {
    try {
      settlements.forEach(
          (row, settlement) -> {
            row.decide(settlement);
            completer.complete(row);
          });
    } finally {
      breakOff(run); // before a stop can have ended the threads for it
      deciding.decrementAndGet();
      run.freePermit();
    }
  }

  /** The handler's outcome changes nothing any more. */
  private void breakOff(HandlerRun run) {
    breakOff(run, () -> {});
  }

  /** First the transaction: what is cancelled then finds it closed. */
  private void breakOff(HandlerRun run, Runnable then) {
    CountDownLatch aborted = new CountDownLatch(1);
    execute(
        breakers,
        run::abort,
        () -> {
          aborted.countDown();
          then.run();
        });
    execute(cancellers, () -> cancel(run, aborted), () -> {});
  }

  private static void cancel(HandlerRun run, CountDownLatch aborted) {
    try {
      aborted.await();
    } catch (InterruptedException byUserCode) { // nobody else interrupts these threads
      Thread.currentThread().interrupt();
    }
    run.cancel();
  }

  private void execute(ExecutorService executor, Runnable task, Runnable then) {
    try {
      executor.execute(
          () -> {
            try {
              task.run();
            } catch (RuntimeException | Error broken) {
              log.debug("[{}] a handler could not be broken off", shared.subscriber(), broken);
            } finally {
              then.run();
            }
          });
    } catch (RuntimeException | Error noThread) { // it ends by itself
      log.debug("[{}] a handler is not broken off", shared.subscriber(), noThread);
      then.run();
    }
  }

  /** Ends the threads that decide; what a blocked one holds is left to the end of its lease. */
  public void shutdown() {
    deciders.shutdown();
    breakers.shutdown();
    cancellers.shutdown();
  }
}
