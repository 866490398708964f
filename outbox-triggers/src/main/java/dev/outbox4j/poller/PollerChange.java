package dev.outbox4j.poller;

import java.time.Instant;

/**
 * What was done to a poller, as it is on record.
 *
 * @param at when, by the server's clock
 * @param verb what
 * @param by who did it; a node, if it put the poller on record or came to its end
 * @param reason why
 * @param versionBefore its version before; 0 before it was put on record
 * @param versionAfter its version after
 * @param positionBefore where it was
 * @param positionAfter where it was then
 */
public record PollerChange(
    Instant at,
    PollerVerb verb,
    String by,
    String reason,
    long versionBefore,
    long versionAfter,
    Position positionBefore,
    Position positionAfter) {}
