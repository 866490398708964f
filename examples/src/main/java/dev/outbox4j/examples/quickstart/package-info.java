/**
 * The quickstart: starts the order service on a PostgreSQL of its own, gives it much and unruly
 * work, and proves from the database what became of it. {@link
 * dev.outbox4j.examples.quickstart.Quickstart} is the beginning.
 */
@NullMarked
package dev.outbox4j.examples.quickstart;

import org.jspecify.annotations.NullMarked;
