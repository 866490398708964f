/**
 * The schema in one place: rules for names, columns, indexes, storage settings and grants.
 * Migrations, stores and the validator use it. Knows no database driver. Not API.
 */
@NullMarked
package dev.outbox4j.internal.schema;

import org.jspecify.annotations.NullMarked;
