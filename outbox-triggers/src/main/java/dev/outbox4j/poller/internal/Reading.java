package dev.outbox4j.poller.internal;

import java.time.Instant;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * What was found at the source at one time, each after the one before: the time, the greatest
 * cursor, the transactions that are open, and those that are prepared.
 *
 * @param at the source's clock
 * @param greatest the greatest cursor that can be seen; null if there is none
 * @param open the open transactions, without the reader's own
 * @param prepared the prepared transactions
 */
record Reading(
    Instant at,
    @Nullable String greatest,
    List<OpenTransaction> open,
    List<OpenTransaction> prepared) {}
