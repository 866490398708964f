package dev.outbox4j.timer;

import java.time.Instant;
import java.util.Optional;

/**
 * A run as it is on record.
 *
 * @param id its key, unique in the database
 * @param instant the one it is for
 * @param cause why it was made
 * @param request the name that somebody gave to what was asked for; empty if nobody asked
 * @param status where it is
 * @param firstMissed the first of the missed instants that it stands for, if they were missed
 * @param missed how many missed instants it stands for
 * @param attempts how many attempts have begun
 * @param token the fencing token of its latest attempt; 0 before the first
 * @param created when it was put on record
 * @param started when its first attempt began
 * @param cancelled when it was asked to stop, if it was
 * @param ended when it ended
 * @param lastError why it failed, if it did
 */
public record RecordedRun(
    long id,
    Instant instant,
    Cause cause,
    Optional<String> request,
    RunStatus status,
    Optional<Instant> firstMissed,
    long missed,
    int attempts,
    long token,
    Instant created,
    Optional<Instant> started,
    Optional<Instant> cancelled,
    Optional<Instant> ended,
    Optional<String> lastError) {}
