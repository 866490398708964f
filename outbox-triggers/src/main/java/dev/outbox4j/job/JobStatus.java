package dev.outbox4j.job;

import java.time.Instant;
import java.util.Optional;

/**
 * What is on record of a job: of the message that was enqueued last for it. Instants are the
 * server's.
 *
 * @param jobId its id
 * @param type its type
 * @param state how far it has come
 * @param messageId the id of its message in the outbox, as the log tells it
 * @param enqueuedAt when it was enqueued
 * @param dueAt when it is due, or was: while it waits for the next attempt, when that is
 * @param attempts how many handler runs have failed, since it was replayed the last time; what is
 *     left to other processes does not count
 * @param deliveries how often a process has taken it, the last time included, since it was replayed
 *     the last time
 * @param endedAt when it came to its state, if that is final and known
 * @param reason why it is failed or dead-lettered, if it is: the code of a {@code FailureReason},
 *     or one that only a newer version knows
 */
public record JobStatus(
    String jobId,
    String type,
    JobState state,
    long messageId,
    Instant enqueuedAt,
    Instant dueAt,
    int attempts,
    int deliveries,
    Optional<Instant> endedAt,
    Optional<String> reason) {}
