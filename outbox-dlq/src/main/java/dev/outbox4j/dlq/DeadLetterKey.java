package dev.outbox4j.dlq;

import java.time.Instant;

/**
 * An ordering key of a queue that has unresolved letters: subscribers with {@code
 * holdKeyOnDeadLetter()} begin no further message of it.
 *
 * @param orderingKey the key
 * @param letters how many unresolved letters it has, at least 1
 * @param since when the one that failed first did so; the latest time, if it was redriven
 * @param firstMessageId the smallest id that one of their messages had in the outbox: it is the
 *     first of the key once they are put back
 */
public record DeadLetterKey(String orderingKey, long letters, Instant since, long firstMessageId) {}
