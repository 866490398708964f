/**
 * For tests of services that use the outbox: {@link dev.outbox4j.test.TestDelivery} to call a
 * handler, {@link dev.outbox4j.test.InMemoryOutbox} for a service without a database, {@link
 * dev.outbox4j.test.OutboxPostgres} for one with PostgreSQL, and {@link
 * dev.outbox4j.test.OutboxAssertions} for what was published to either.
 */
@NullMarked
package dev.outbox4j.test;

import org.jspecify.annotations.NullMarked;
