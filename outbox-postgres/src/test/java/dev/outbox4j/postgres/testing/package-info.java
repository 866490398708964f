/**
 * A PostgreSQL for tests, also those of the other modules: {@link
 * dev.outbox4j.postgres.testing.PostgresExtension} gives each test class a database of its own on
 * the server of {@link dev.outbox4j.postgres.testing.PostgresServer}.
 */
package dev.outbox4j.postgres.testing;
