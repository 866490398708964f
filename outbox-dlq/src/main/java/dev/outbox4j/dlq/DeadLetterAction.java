package dev.outbox4j.dlq;

import java.time.Instant;
import java.util.Optional;

/**
 * An entry of the audit.
 *
 * @param id its id
 * @param action {@code redrive}, {@code edit}, {@code discard}, {@code purge}; {@code retention},
 *     or {@code drop partition} of one
 * @param by who did it
 * @param note why, if that was said
 * @param filter to which letters, in words
 * @param beganAt when it began
 * @param endedAt when it ended; empty while it runs, and if its process has died
 * @param status {@code running}, {@code completed}, {@code stopped}, {@code failed}, or {@code
 *     died} if it has not ended and has given no sign of life for five minutes: its process has
 *     died, or a single check takes as long. The drop of a partition lives for as long as a
 *     retention does, which deletes the histories of its letters at last
 * @param done how many letters it was done to; of a partition that was dropped, about how many it
 *     had, as the server reckons
 * @param refused how many it was not done to, though they were meant
 * @param passedBy how many it was not done to, since somebody else had them in hand or was faster,
 *     or since an older letter of their ordering key stays
 * @param error why it failed, if it did
 */
public record DeadLetterAction(
    long id,
    String action,
    String by,
    Optional<String> note,
    String filter,
    Instant beganAt,
    Optional<Instant> endedAt,
    String status,
    long done,
    long refused,
    long passedBy,
    Optional<String> error) {}
