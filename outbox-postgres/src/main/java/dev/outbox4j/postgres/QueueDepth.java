package dev.outbox4j.postgres;

import java.time.Duration;
import java.util.Objects;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/**
 * How much one queue holds, counted up to a limit.
 *
 * @param queue the queue
 * @param ready rows that are due and not leased
 * @param leased rows that a subscriber holds
 * @param dueLater rows that are not due yet: delayed, retried or rescheduled
 * @param capped true if counting stopped at the limit, so that there may be more of each
 * @param oldestReady how long the oldest ready row has been due, by the server's clock; null if no
 *     row that was looked at is ready
 */
public record QueueDepth(
    String queue,
    long ready,
    long leased,
    long dueLater,
    boolean capped,
    @Nullable Duration oldestReady) {

  /** Checks the name. */
  public QueueDepth {
    Objects.requireNonNull(queue, "queue");
  }

  /** {@return how long the oldest ready row has been due, if one is ready} */
  public Optional<Duration> oldestReadyAge() {
    return Optional.ofNullable(oldestReady);
  }
}
