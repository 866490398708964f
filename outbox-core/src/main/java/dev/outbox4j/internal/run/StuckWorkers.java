package dev.outbox4j.internal.run;

import dev.outbox4j.internal.OneLine;
import dev.outbox4j.internal.state.ClaimedBatch;
import dev.outbox4j.internal.state.HandlerRun;
import dev.outbox4j.internal.state.HeldRow;
import dev.outbox4j.internal.state.HeldRows;
import java.time.Duration;
import java.util.concurrent.TimeUnit;
import java.util.function.BooleanSupplier;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Tells for how long all workers have been busy with the same messages, and says so in the log when
 * it is long: nothing else goes on then. Confined to the lease keeper, but for the question.
 */
public final class StuckWorkers {
  private static final Logger log = LoggerFactory.getLogger(StuckWorkers.class);

  private static final long LONG = TimeUnit.SECONDS.toNanos(30);
  private static final long LOOK_EVERY = TimeUnit.SECONDS.toNanos(1);
  private static final long SAY_EVERY = TimeUnit.MINUTES.toNanos(1);

  private final String subscriber;
  private final HeldRows registry;
  private final int workers;
  private final BooleanSupplier allBusy;
  private final Supplier<@Nullable HandlerRun> oldestOverdue;

  private volatile long stuckSince; // 0 while a worker is free
  private long newestStart;
  private long lookAt;
  private long sayAt;

  public StuckWorkers(
      String subscriber,
      HeldRows registry,
      int workers,
      BooleanSupplier allBusy,
      Supplier<@Nullable HandlerRun> oldestOverdue,
      long now) {
    this.subscriber = subscriber;
    this.registry = registry;
    this.workers = workers;
    this.allBusy = allBusy;
    this.oldestOverdue = oldestOverdue;
    this.lookAt = now;
    this.sayAt = now;
  }

  public void look(long now) {
    if (now - lookAt < 0) {
      return;
    }
    lookAt = now + LOOK_EVERY;
    if (!allBusy.getAsBoolean()) {
      stuckSince = 0;
      return;
    }
    HeldRow oldest = null;
    long first = 0;
    long newest = 0;
    for (ClaimedBatch batch : registry.batches()) {
      for (int i = 0; i < batch.size(); i++) {
        HeldRow row = batch.at(i);
        HandlerRun run = row == null ? null : row.running();
        if (run == null) {
          continue;
        }
        long start = run.startedAt();
        newest = newest == 0 || start - newest > 0 ? start : newest;
        if (oldest == null || start - first < 0) {
          oldest = row;
          first = start;
        }
      }
    }
    boolean begun = newest != 0 && (newestStart == 0 || newest - newestStart > 0);
    if (stuckSince == 0 || begun) {
      stuckSince = now == 0 ? 1 : now;
      newestStart = newest;
    } else if (now - stuckSince >= LONG && now - sayAt >= 0) {
      sayAt = now + SAY_EVERY;
      say(oldest, first, now);
    }
  }

  /** Thread-safe. */
  public Duration stuckFor(long now) {
    long since = stuckSince;
    // nobody looks any more once the keeper has ended
    return since == 0 || !allBusy.getAsBoolean()
        ? Duration.ZERO
        : Duration.ofNanos(Math.max(0, now - since));
  }

  private void say(@Nullable HeldRow oldest, long startedAt, long now) {
    HandlerRun overdue = oldestOverdue.get();
    log.warn(
        "[{}] all {} workers have been busy with the same messages for {} s, and no other can be handled: {}",
        subscriber,
        workers,
        TimeUnit.NANOSECONDS.toSeconds(now - stuckSince),
        overdue != null
            ? "handlers go on past handlerTimeout and do not heed the interrupt; the oldest is that of message %d of queue '%s', %s, for %d s; a thread dump shows what it waits for"
                .formatted(
                    overdue.row().id(),
                    OneLine.of(overdue.row().queue()),
                    overdue.row().typeInWords(),
                    TimeUnit.NANOSECONDS.toSeconds(now - overdue.startedAt()))
            : oldest == null
                ? "the executor has not begun their handlers"
                : "the oldest handles message %d of queue '%s', %s, for %d s; look at what it waits for, or set a shorter handlerTimeout"
                    .formatted(
                        oldest.id(),
                        OneLine.of(oldest.queue()),
                        oldest.typeInWords(),
                        TimeUnit.NANOSECONDS.toSeconds(now - startedAt)));
  }
}
