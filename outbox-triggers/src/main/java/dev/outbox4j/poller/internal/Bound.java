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
 */
record Bound(
    @Nullable String cursor,
    boolean inclusive,
    Instant completeAt,
    @Nullable SourceServer server) {}
