/** What every publisher asks of the messages of a call, on PostgreSQL and in memory. Not API. */
@NullMarked
package dev.outbox4j.internal.publish;

import org.jspecify.annotations.NullMarked;
