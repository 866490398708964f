package dev.outbox4j;

/**
 * One message of a batch. {@link Delivery#decide} says what becomes of it; what nothing was decided
 * of goes with the batch.
 *
 * @param body the decoded payload
 * @param delivery the message and its lease
 * @param <T> what the payload is decoded to
 */
public record BatchMessage<T>(T body, Delivery delivery) {}
