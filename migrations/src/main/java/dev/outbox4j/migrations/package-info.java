/**
 * The schema as Flyway migrations: apply or print them with {@link
 * dev.outbox4j.migrations.OutboxMigrations}.
 */
@NullMarked
package dev.outbox4j.migrations;

import org.jspecify.annotations.NullMarked;
