package dev.outbox4j;

import java.time.Duration;
import org.jspecify.annotations.Nullable;

/**
 * How long a message waits after a failed attempt, for {@link RetryPolicy#custom}. Must be
 * thread-safe, and must not block.
 */
@FunctionalInterface
public interface RetryDelay {

  /**
   * Returns how long to wait. If it throws, the message comes again in 30 s, and an error is
   * logged.
   *
   * @param attempt which handler run failed, counted from 1
   * @param failure what the handler threw, or null if it asked for a retry
   * @return the wait; less than zero counts as zero, and the policy's longest delay bounds it
   */
  Duration after(int attempt, @Nullable Throwable failure);
}
