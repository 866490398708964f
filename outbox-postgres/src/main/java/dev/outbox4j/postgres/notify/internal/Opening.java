package dev.outbox4j.postgres.notify.internal;

import java.time.Duration;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/**
 * An attempt to connect, on a thread of its own, since drivers block beyond any limit when the
 * network swallows what they send. Who waits may give up and come back to the same attempt, so that
 * a hanging server does not collect attempts; an abandoned one closes what it still gets.
 */
final class Opening {
  private static final long MAX_AGE_NANOS = Duration.ofMinutes(1).toNanos();

  private final long startedAt = System.nanoTime();

  /** Never fails itself: a failure that cannot be read would be one more on its way out. */
  private final CompletableFuture<Result> result = new CompletableFuture<>();

  private final Thread thread;

  /** A connection, or why there is none. */
  private record Result(@Nullable ListenConnection connection, @Nullable Throwable failure) {}

  private Opening(
      ListenDriver driver, Consumer<String> onNotification, Duration limit, String threadName) {
    thread = new Thread(() -> open(driver, onNotification, limit), threadName);
    thread.setDaemon(true);
  }

  static Opening start(
      ListenDriver driver, Consumer<String> onNotification, Duration limit, String threadName) {
    Opening opening = new Opening(driver, onNotification, limit, threadName);
    opening.thread.start();
    return opening;
  }

  private void open(ListenDriver driver, Consumer<String> onNotification, Duration limit) {
    try {
      ListenConnection connection = driver.open(onNotification, limit);
      if (!result.complete(new Result(connection, null))) {
        connection.close();
      }
    } catch (Throwable e) { // whatever it was, whoever waits must hear of it
      result.complete(new Result(null, e));
    }
  }

  boolean isTooOld() {
    return System.nanoTime() - startedAt > MAX_AGE_NANOS;
  }

  boolean isDone() {
    return result.isDone();
  }

  /** Waits for the end of the attempt and tells whether it has come. */
  boolean awaitEnd(Duration limit) throws InterruptedException {
    try {
      result.get(limit.toNanos(), TimeUnit.NANOSECONDS);
      return true;
    } catch (TimeoutException e) {
      return false;
    } catch (ExecutionException e) {
      throw new AssertionError(e);
    }
  }

  /** Returns the connection of an attempt that has ended, or throws why there is none. */
  ListenConnection connection() throws Exception {
    Result ended = result.join();
    if (ended.connection() != null) {
      return ended.connection();
    }
    if (ended.failure() instanceof Error error) {
      throw error;
    }
    throw ended.failure() instanceof Exception e ? e : new IllegalStateException(ended.failure());
  }

  void abandon() {
    thread.interrupt();
    if (!result.cancel(false)) {
      ListenConnection connection = result.join().connection();
      if (connection != null) {
        connection.close();
      }
    }
  }
}
