package dev.outbox4j.poller.internal;

import java.time.Instant;
import org.jspecify.annotations.Nullable;

/**
 * Up to where all rows are there that ever will be.
 *
 * @param cursor the greatest cursor, as its text; null for no bound
 * @param inclusive whether rows of this cursor are there, too
 * @param completeAt by when everything is handled that was committed, once all up to the bound is;
 *     by the source's clock
 * @param server on which server that is so; null if on any
 * @param setAt when the mark was set that it is; what was written by a cursor that could be seen
 *     then is there, too. Null if it is none
 */
record Bound(
    @Nullable String cursor,
    boolean inclusive,
    Instant completeAt,
    @Nullable SourceServer server,
    @Nullable Instant setAt) {}
