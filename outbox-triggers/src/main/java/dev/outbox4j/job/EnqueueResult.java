package dev.outbox4j.job;

import java.time.Instant;

/**
 * What became of a job that was to be enqueued. Instants are the server's.
 *
 * @param jobId the id of the job
 * @param decision what was decided
 * @param messageId the id of the message that has the job: the new one, or the one before
 * @param freeAt until when another enqueue of the job changes nothing, if it stays in the state
 *     that it is in
 */
public record EnqueueResult(String jobId, Decision decision, long messageId, Instant freeAt) {

  /** What was decided. */
  public enum Decision {
    /** A message was published. */
    ENQUEUED,
    /** Nothing was: the message before is in the outbox, and its window is not over. */
    IN_FLIGHT,
    /** Nothing was: the job was completed a short time ago. */
    COMPLETED
  }

  /** {@return whether a message was published} */
  public boolean enqueued() {
    return decision == Decision.ENQUEUED;
  }
}
