/**
 * The outbox on PostgreSQL. {@link dev.outbox4j.postgres.PostgresOutbox} is the entry point: it
 * gives the store, the publishers and the schema validator of an {@link
 * dev.outbox4j.postgres.OutboxTable}. LISTEN sources are in {@code dev.outbox4j.postgres.notify.*},
 * one package per driver.
 */
@NullMarked
package dev.outbox4j.postgres;

import org.jspecify.annotations.NullMarked;
