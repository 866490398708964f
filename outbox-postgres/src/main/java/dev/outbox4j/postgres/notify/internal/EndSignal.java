package dev.outbox4j.postgres.notify.internal;

import java.time.Duration;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;

/** Lets a thread wait until a connection, whose driver pushes notifications, has died. */
public final class EndSignal {
  private final CompletableFuture<Void> ended = new CompletableFuture<>();

  /** Says that the connection is dead; only the first cause counts. */
  public void died(Throwable cause) {
    ended.completeExceptionally(cause);
  }

  /**
   * Waits until the limit is over.
   *
   * @throws Exception the cause, as soon as the connection has died
   */
  public void await(Duration limit) throws Exception {
    try {
      ended.get(limit.toNanos(), TimeUnit.NANOSECONDS);
    } catch (TimeoutException e) {
      return; // it lives
    } catch (ExecutionException e) {
      throw e.getCause() instanceof Exception exception ? exception : e;
    }
  }
}
