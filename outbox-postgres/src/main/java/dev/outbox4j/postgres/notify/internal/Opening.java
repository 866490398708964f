package dev.outbox4j.postgres.notify.internal;

import java.time.Duration;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.function.Consumer;

/**
 * An attempt to connect, on a thread of its own, since drivers block beyond any limit when the
 * network swallows what they send. Who waits may give up and come back to the same attempt, so that
 * a hanging server does not collect attempts; an abandoned one closes what it still gets.
 */
final class Opening {
  private static final long MAX_AGE_NANOS = Duration.ofMinutes(1).toNanos();

  private final long startedAt = System.nanoTime();
  private final CompletableFuture<ListenConnection> result = new CompletableFuture<>();
  private final Thread thread;

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
      if (!result.complete(connection)) {
        connection.close();
      }
    } catch (Throwable e) { // whatever it was, whoever waits must hear of it
      result.completeExceptionally(e);
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
      return true; // connection() throws it
    }
  }

  /** Returns the connection of an attempt that has ended, or throws why there is none. */
  ListenConnection connection() throws Exception {
    try {
      return result.join();
    } catch (CompletionException e) {
      Throwable cause = e.getCause();
      if (cause instanceof Error error) {
        throw error;
      }
      throw cause instanceof Exception exception ? exception : e;
    }
  }

  void abandon() {
    thread.interrupt();
    if (!result.cancel(false) && !result.isCompletedExceptionally()) {
      result.join().close();
    }
  }
}
