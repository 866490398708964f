/**
 * LISTEN through pgjdbc, which needs no jar beside the one that the pool uses: {@link
 * dev.outbox4j.postgres.notify.pgjdbc.PgjdbcListen}.
 */
@NullMarked
package dev.outbox4j.postgres.notify.pgjdbc;

import org.jspecify.annotations.NullMarked;
