package dev.outbox4j.internal;

import dev.outbox4j.internal.InFlight.State;
import java.time.Duration;
import java.util.concurrent.TimeUnit;
import java.util.function.BooleanSupplier;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Tells for how long all workers have been busy with the same messages, and says so in the log when
 * it is long: nothing else goes on then. Confined to the lease keeper, but for the question.
 */
final class StuckWorkers {
  private static final Logger log = LoggerFactory.getLogger(StuckWorkers.class);

  private static final long LONG = TimeUnit.SECONDS.toNanos(30);
  private static final long LOOK_EVERY = TimeUnit.SECONDS.toNanos(1);
  private static final long SAY_EVERY = TimeUnit.MINUTES.toNanos(1);

  private final String subscriber;
  private final InFlightRegistry registry;
  private final int workers;
  private final BooleanSupplier allBusy;

  private volatile long stuckSince; // 0 while a worker is free
  private long newestStart;
  private long lookAt;
  private long sayAt;

  StuckWorkers(
      String subscriber,
      InFlightRegistry registry,
      int workers,
      BooleanSupplier allBusy,
      long now) {
    this.subscriber = subscriber;
    this.registry = registry;
    this.workers = workers;
    this.allBusy = allBusy;
    this.lookAt = now;
    this.sayAt = now;
  }

  void look(long now) {
    if (now - lookAt < 0) {
      return;
    }
    lookAt = now + LOOK_EVERY;
    if (!allBusy.getAsBoolean()) {
      stuckSince = 0;
      return;
    }
    InFlight oldest = null;
    long newest = 0;
    for (ClaimedBatch batch : registry.batches()) {
      for (int i = 0; i < batch.size(); i++) {
        InFlight row = batch.at(i);
        if (row == null || row.state() != State.RUNNING) {
          continue;
        }
        long start = row.startedAt();
        newest = newest == 0 || start - newest > 0 ? start : newest;
        oldest = oldest == null || start - oldest.startedAt() < 0 ? row : oldest;
      }
    }
    boolean begun = newest != 0 && (newestStart == 0 || newest - newestStart > 0);
    if (stuckSince == 0 || begun) {
      stuckSince = now == 0 ? 1 : now;
      newestStart = newest;
    } else if (now - stuckSince >= LONG && now - sayAt >= 0) {
      sayAt = now + SAY_EVERY;
      say(oldest, now);
    }
  }

  /** Thread-safe. */
  Duration stuckFor(long now) {
    long since = stuckSince;
    return since == 0 ? Duration.ZERO : Duration.ofNanos(Math.max(0, now - since));
  }

  private void say(@Nullable InFlight oldest, long now) {
    log.warn(
        "[{}] all {} workers have been busy with the same messages for {} s, and no other can be handled: {}",
        subscriber,
        workers,
        TimeUnit.NANOSECONDS.toSeconds(now - stuckSince),
        oldest == null
            ? "handlers go on past handlerTimeout and do not heed the interrupt, or the executor has not begun them"
            : "the oldest handles message %d of queue '%s', %s, for %d s; look at what it waits for, or set a shorter handlerTimeout"
                .formatted(
                    oldest.id(),
                    OneLine.of(oldest.queue()),
                    oldest.typeInWords(),
                    TimeUnit.NANOSECONDS.toSeconds(now - oldest.startedAt())));
  }
}
