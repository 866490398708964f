/**
 * A table that a legacy application writes, followed into a queue. {@link
 * dev.outbox4j.examples.poller.CustomersPoller} follows it, {@link
 * dev.outbox4j.examples.poller.CustomerDirectory} builds a read model from the queue, and {@link
 * dev.outbox4j.examples.poller.CustomersExample} lets both run beside writers whose transactions
 * overlap, and accounts for each version of each row.
 */
@NullMarked
package dev.outbox4j.examples.poller;

import org.jspecify.annotations.NullMarked;
