package dev.outbox4j.dlq;

import dev.outbox4j.Payload;
import java.time.Instant;
import java.util.Map;
import java.util.Optional;

/**
 * One redrive of a dead letter.
 *
 * @param number which one it was, from 1; those by hand are counted, and have no trip
 * @param redrivenAt when
 * @param redrivenBy by whom
 * @param note why, if that was said
 * @param failure what had failed before it
 * @param original what the message had been, if it was changed
 * @param outcome what became of it
 */
public record DeadLetterTrip(
    int number,
    Instant redrivenAt,
    String redrivenBy,
    Optional<String> note,
    Failure failure,
    Optional<Original> original,
    Outcome outcome) {

  /** What became of a redrive. */
  public enum Outcome {
    /** The message is in the outbox. */
    WAITING,
    /** The message failed again, and the letter is open again, or was redriven once more. */
    FAILED_AGAIN,
    /** The message has left the outbox: it was handled, replaced, cancelled or deleted. */
    GONE
  }

  /**
   * A failure for good.
   *
   * @param at when
   * @param reason the code of its {@link dev.outbox4j.FailureReason}
   * @param exception the last exception, if there was one
   * @param deliveries how often the message had been claimed
   * @param attempts how many handler runs had failed
   */
  public record Failure(
      Instant at, String reason, Optional<String> exception, int deliveries, int attempts) {}

  /**
   * What a message had been before it was changed.
   *
   * @param type its type, if it had one
   * @param payload its bytes
   * @param headers its headers
   */
  public record Original(Optional<String> type, Payload payload, Map<String, String> headers) {}
}
