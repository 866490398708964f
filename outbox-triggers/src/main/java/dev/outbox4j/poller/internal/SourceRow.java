package dev.outbox4j.poller.internal;

import dev.outbox4j.poller.Position;
import dev.outbox4j.poller.RowChange;

/**
 * A row that was read.
 *
 * @param change what the handler gets
 * @param position the position behind it
 */
record SourceRow(RowChange change, Position position) {}
