/** How the store speaks to PostgreSQL. Not API: anything here may change. */
@NullMarked
package dev.outbox4j.postgres.internal;

import org.jspecify.annotations.NullMarked;
