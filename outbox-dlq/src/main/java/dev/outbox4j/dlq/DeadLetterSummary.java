package dev.outbox4j.dlq;

import java.time.Instant;
import java.util.Optional;

/**
 * A line of a page: all but what may be large.
 *
 * @param id its own id
 * @param messageId the id that it had in the outbox, as the log tells it
 * @param queue the queue
 * @param type its type, if it has one
 * @param orderingKey its ordering key, if it has one
 * @param payloadBytes the size of the payload
 * @param deliveries how often it was claimed
 * @param attempts how many handler runs ended in failure
 * @param failedAt when it failed for good, the latest time if it was redriven
 * @param reason the code of its {@link dev.outbox4j.FailureReason}
 * @param exception the first 200 characters of the last exception, if there was one
 * @param redrives how often it was redriven
 * @param resolution what was done about it, if it is resolved
 * @param note why it was not redriven the last time somebody tried, if it was refused
 */
public record DeadLetterSummary(
    long id,
    long messageId,
    String queue,
    Optional<String> type,
    Optional<String> orderingKey,
    long payloadBytes,
    int deliveries,
    int attempts,
    Instant failedAt,
    String reason,
    Optional<String> exception,
    int redrives,
    Optional<DeadLetterResolution> resolution,
    Optional<String> note) {}
