/**
 * Transactional handlers over R2DBC: {@link dev.outbox4j.postgres.r2dbc.R2dbcTransactions}. Needs
 * {@code org.postgresql:r2dbc-postgresql}.
 */
@NullMarked
package dev.outbox4j.postgres.r2dbc;

import org.jspecify.annotations.NullMarked;
