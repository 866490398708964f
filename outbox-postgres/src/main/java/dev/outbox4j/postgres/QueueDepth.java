package dev.outbox4j.postgres;

import java.time.Duration;
import java.util.Objects;
import java.util.Optional;

/**
 * How much one queue holds, counted up to a limit.
 *
 * @param queue the queue
 * @param ready rows that are due and not leased
 * @param leased rows that a subscriber holds
 * @param dueLater rows that are not due yet: delayed, retried or rescheduled
 * @param capped true if counting stopped at the limit, so that there may be more of each
 * @param oldestReady how long the oldest ready row has been due, by the server's clock, if a row
 *     that was looked at is ready
 * @param oldestDue how long the oldest row has been due, leased or not, if one is due
 */
public record QueueDepth(
    String queue,
    long ready,
    long leased,
    long dueLater,
    boolean capped,
    Optional<Duration> oldestReady,
    Optional<Duration> oldestDue) {

  /** Checks the name. */
  public QueueDepth {
    Objects.requireNonNull(queue, "queue");
  }
}
