/**
 * Extension points: {@link dev.outbox4j.spi.OutboxStore} claims and settles rows, {@link
 * dev.outbox4j.spi.NotificationSource} wakes a subscriber, {@link dev.outbox4j.spi.DeadLetters}
 * takes terminal failures, {@link dev.outbox4j.spi.PayloadCodec} reads payloads, {@link
 * dev.outbox4j.SubscriberEvents} observes.
 */
@NullMarked
package dev.outbox4j.spi;

import org.jspecify.annotations.NullMarked;
