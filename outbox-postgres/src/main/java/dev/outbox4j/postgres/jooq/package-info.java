/**
 * Publishing in jOOQ's transactions; the one package that needs jOOQ on the class path. {@link
 * dev.outbox4j.postgres.jooq.JooqOutboxPublisher} is the entry point.
 */
@NullMarked
package dev.outbox4j.postgres.jooq;

import org.jspecify.annotations.NullMarked;
