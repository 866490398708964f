/**
 * LISTEN through r2dbc-postgresql, the first choice: {@link
 * dev.outbox4j.postgres.notify.r2dbc.R2dbcListen}. Needs {@code org.postgresql:r2dbc-postgresql}.
 */
@NullMarked
package dev.outbox4j.postgres.notify.r2dbc;

import org.jspecify.annotations.NullMarked;
