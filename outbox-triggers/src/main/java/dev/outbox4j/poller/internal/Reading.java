package dev.outbox4j.poller.internal;

import java.time.Instant;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * What was found at the source at one time, each after the one before: the time, the greatest
 * cursor, the sessions with the transactions that are open, and the prepared transactions.
 *
 * @param server the server
 * @param at the source's clock
 * @param greatest the greatest cursor that can be seen; null if there is none
 * @param sessions the sessions, without the reader's own
 * @param prepared the prepared transactions
 */
record Reading(
    SourceServer server,
    Instant at,
    @Nullable String greatest,
    List<Session> sessions,
    List<OpenTransaction> prepared) {}
