/** Reads the rows of ordered queues, by buckets, and hands them on one at a time for each key. */
@NullMarked
package dev.outbox4j.internal.order;

import org.jspecify.annotations.NullMarked;
