package dev.outbox4j.test.internal.kit;

import dev.outbox4j.Delivery;
import dev.outbox4j.FailureReason;
import dev.outbox4j.OutboxSubscriber;
import dev.outbox4j.SubscriberEvents;
import dev.outbox4j.internal.run.SoleExecutor;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CompletionException;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.BooleanSupplier;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/**
 * One drain of a queue. The subscriber's executor is a list of tasks, which the calling thread
 * runs; so the handlers are on it, while claims and writes are on the subscriber's threads.
 */
public final class Drain {
  private static final long PAUSE_NANOS = TimeUnit.MILLISECONDS.toNanos(1);

  /** For a stage that is pending when the time is up. */
  private static final Duration GRACE = Duration.ofMillis(200);

  /** A task runs several messages for a while, and ends by itself unless one of them hangs. */
  private static final Duration TURN = Duration.ofMillis(200);

  private static final int MOST_SUPPRESSED = 20;

  private final Duration limit;
  private final BooleanSupplier drained;
  private final Supplier<String> notDrained;
  private final BlockingQueue<Runnable> tasks = new LinkedBlockingQueue<>();
  private final AtomicInteger runs = new AtomicInteger();
  private final AtomicInteger retried = new AtomicInteger();
  private final AtomicInteger deadLettered = new AtomicInteger();
  private final List<Throwable> failures = new CopyOnWriteArrayList<>();

  /**
   * Prepares it.
   *
   * @param limit how long it may take; a handler that runs then is interrupted
   * @param drained tells whether nothing is due
   * @param notDrained tells what still is
   */
  public Drain(Duration limit, BooleanSupplier drained, Supplier<String> notDrained) {
    this.limit = limit;
    this.drained = drained;
    this.notDrained = notDrained;
  }

  /**
   * Runs a subscriber until nothing is due.
   *
   * @param builder has its store, handlers and settings; the executor and workers are set here
   * @throws AssertionError if a handler threw one, or the time is up; what handlers have thrown is
   *     suppressed then
   */
  public void run(OutboxSubscriber.Builder builder) {
    OutboxSubscriber subscriber =
        builder
            .executor((SoleExecutor) tasks::add)
            .workers(1)
            .gracefulTimeout(GRACE)
            .events(new Observer())
            .build();
    AssertionError late;
    try (Watchdog watchdog = Watchdog.start(limit.plus(TURN));
        subscriber) {
      subscriber.start();
      late = runTasks(watchdog);
    }
    if (late != null) {
      failures.stream().limit(MOST_SUPPRESSED).forEach(late::addSuppressed);
      throw late;
    }
    for (Throwable failure : failures) {
      if (unwrapped(failure) instanceof AssertionError check) {
        throw check;
      }
    }
  }

  /** How many handler runs there were. */
  public int runs() {
    return runs.get();
  }

  /** How often a message was put back for a retry; known once {@link #run} has returned. */
  public int retried() {
    return retried.get();
  }

  /** How many messages failed for good; known once {@link #run} has returned. */
  public int deadLettered() {
    return deadLettered.get();
  }

  /** What handlers threw, oldest first. */
  public List<Throwable> failures() {
    return List.copyOf(failures);
  }

  private static Throwable unwrapped(Throwable failure) {
    Throwable cause = failure instanceof CompletionException ? failure.getCause() : null;
    return cause == null ? failure : cause;
  }

  /** Returns why it ended too early; null if nothing is due. */
  private @Nullable AssertionError runTasks(Watchdog watchdog) {
    long begun = System.nanoTime();
    boolean interrupted = false;
    while (!drained.getAsBoolean()) {
      if (System.nanoTime() - begun > limit.toNanos() || interrupted) {
        return new AssertionError(notDrained.get());
      }
      try {
        Runnable task = tasks.poll(PAUSE_NANOS, TimeUnit.NANOSECONDS);
        if (task != null) {
          watchdog.run(task);
        }
      } catch (InterruptedException e) {
        interrupted = true;
        Thread.currentThread().interrupt();
      }
      StackTraceElement[] place = watchdog.place();
      if (place != null) {
        return hung(place);
      }
    }
    return null;
  }

  private AssertionError hung(StackTraceElement[] place) {
    TimeoutException handler = new TimeoutException("The handler was here");
    handler.setStackTrace(place);
    return new AssertionError(
        "A handler still ran after %s, when its drain was to end, and was interrupted; the cause shows where it hung"
            .formatted(limit),
        handler);
  }

  private final class Observer implements SubscriberEvents {
    @Override
    public void handled(
        String subscriber, Delivery delivery, Duration took, @Nullable Throwable failure) {
      runs.incrementAndGet();
      if (failure != null) {
        failures.add(failure);
      }
    }

    @Override
    public void retried(String subscriber, Delivery delivery, Duration delay) {
      retried.incrementAndGet();
    }

    @Override
    public void deadLettered(
        String subscriber, Delivery delivery, FailureReason reason, boolean written) {
      deadLettered.incrementAndGet();
    }
  }
}
