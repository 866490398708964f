package dev.outbox4j.poller.internal;

/**
 * A column of a table, by the catalog.
 *
 * @param table the table's oid
 * @param number the column's number
 */
record ColumnNumber(long table, int number) {}
