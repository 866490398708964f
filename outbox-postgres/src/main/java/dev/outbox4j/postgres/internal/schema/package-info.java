/** Compares the live catalog with what the code needs. Not API. */
@NullMarked
package dev.outbox4j.postgres.internal.schema;

import org.jspecify.annotations.NullMarked;
