package dev.outbox4j.test;

import dev.outbox4j.Delivery;
import dev.outbox4j.OutboxMessage;
import dev.outbox4j.OutboxSubscriber;
import dev.outbox4j.SubscriberEvents;
import dev.outbox4j.spi.PayloadCodec;
import java.time.Duration;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CompletionException;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/**
 * One drain of a queue. The subscriber's executor is a list of tasks, which the calling thread
 * runs; so the handlers are on it, while claims and writes are on the subscriber's threads.
 */
final class Drain {
  private static final long PAUSE_NANOS = TimeUnit.MILLISECONDS.toNanos(1);

  /** For a stage that is pending when the time is up. */
  private static final Duration GRACE = Duration.ofMillis(200);

  private final InMemoryOutbox outbox;
  private final String queue;
  private final Duration limit;
  private final BlockingQueue<Runnable> tasks = new LinkedBlockingQueue<>();
  private final AtomicInteger runs = new AtomicInteger();
  private final List<Throwable> failures = new CopyOnWriteArrayList<>();

  Drain(InMemoryOutbox outbox, String queue, Duration limit) {
    this.outbox = outbox;
    this.queue = OutboxMessage.to(queue).build().queue();
    this.limit = limit;
  }

  Drained run(Consumer<OutboxSubscriber.Builder> settings) {
    Objects.requireNonNull(settings, "settings");
    OutboxSubscriber.Builder builder =
        OutboxSubscriber.builder(queue)
            .store(outbox.store())
            .listen(outbox.notifications())
            .deadLetters(outbox.deadLetters());
    PayloadCodec codec = outbox.codec();
    if (codec != null) {
      builder.codec(codec);
    }
    settings.accept(builder);
    OutboxSubscriber subscriber =
        builder
            .executor(tasks::add)
            .workers(1)
            .gracefulTimeout(GRACE)
            .events(new Observer())
            .build();
    try (subscriber) {
      subscriber.start();
      runTasks();
    }
    for (Throwable failure : failures) {
      if (unwrapped(failure) instanceof AssertionError check) {
        throw check;
      }
    }
    return new Drained(runs.get(), failures);
  }

  private static Throwable unwrapped(Throwable failure) {
    Throwable cause = failure instanceof CompletionException ? failure.getCause() : null;
    return cause == null ? failure : cause;
  }

  private void runTasks() {
    long begun = System.nanoTime();
    boolean interrupted = false;
    while (!outbox.isDrained(queue)) {
      if (System.nanoTime() - begun > limit.toNanos() || interrupted) {
        throw new AssertionError(outbox.notDrained(queue, limit));
      }
      try {
        Runnable task = tasks.poll(PAUSE_NANOS, TimeUnit.NANOSECONDS);
        if (task != null) {
          task.run();
        }
      } catch (InterruptedException e) {
        interrupted = true;
        Thread.currentThread().interrupt();
      }
    }
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
  }
}
