/** Handlers in the transaction that settles their row. Not API. */
@NullMarked
package dev.outbox4j.postgres.internal.transactions;

import org.jspecify.annotations.NullMarked;
