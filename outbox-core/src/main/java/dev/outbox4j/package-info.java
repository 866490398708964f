/**
 * The words a user types: {@link dev.outbox4j.OutboxMessage} to publish, {@link
 * dev.outbox4j.OutboxSubscriber} to subscribe, {@link dev.outbox4j.Delivery} and {@link
 * dev.outbox4j.Outcome} inside a handler, {@link dev.outbox4j.RetryPolicy} for what happens when it
 * fails. Extension points are in {@code dev.outbox4j.spi}.
 */
@NullMarked
package dev.outbox4j;

import org.jspecify.annotations.NullMarked;
