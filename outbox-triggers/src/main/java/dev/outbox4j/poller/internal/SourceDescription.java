package dev.outbox4j.poller.internal;

import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * What the catalog says of a source.
 *
 * @param label what it is called: the schema and name of a table, or the name of a query
 * @param from what stands behind {@code from}
 * @param cursor the cursor
 * @param key the key
 * @param columns the columns that are read
 * @param softDelete the place of the soft-delete column among them; -1 for none
 * @param tombstones what stands behind {@code from} for the tombstones, if there are any
 * @param tombstoneColumns their columns
 * @param counted the cursor, if numbers of a sequence are waited for; null otherwise
 * @param facts what the fingerprint has of it
 * @param warnings what costs time
 */
record SourceDescription(
    String label,
    String from,
    OrderedColumn cursor,
    List<OrderedColumn> key,
    List<SourceColumn> columns,
    int softDelete,
    @Nullable String tombstones,
    List<SourceColumn> tombstoneColumns,
    @Nullable ColumnNumber counted,
    Map<String, String> facts,
    List<String> warnings) {}
