/**
 * Dead letters on PostgreSQL. {@link dev.outbox4j.dlq.DeadLetterQueue} names the table to which a
 * subscriber moves what failed for good.
 */
@NullMarked
package dev.outbox4j.dlq;

import org.jspecify.annotations.NullMarked;
