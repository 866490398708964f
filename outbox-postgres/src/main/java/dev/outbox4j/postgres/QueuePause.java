package dev.outbox4j.postgres;

import java.time.Instant;
import java.util.Optional;

/**
 * A pause of a queue. Instants are the database server's.
 *
 * @param queue the queue
 * @param pausedAt since when
 * @param pausedBy who paused it
 * @param reason why, if it was said
 * @param resumedAt until when; empty while it lasts
 * @param resumedBy who resumed it; empty while it lasts
 */
public record QueuePause(
    String queue,
    Instant pausedAt,
    String pausedBy,
    Optional<String> reason,
    Optional<Instant> resumedAt,
    Optional<String> resumedBy) {

  /** {@return whether the queue is paused by it still} */
  public boolean lasts() {
    return resumedAt.isEmpty();
  }
}
