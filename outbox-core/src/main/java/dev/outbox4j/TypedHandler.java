package dev.outbox4j;

/**
 * Handles messages whose payload was decoded. A normal return acks in {@link AckMode#AUTO}, an
 * exception retries.
 *
 * <p>Runs on several threads at once, so it must be thread-safe; no database connection of the
 * subscriber is held meanwhile. Must be idempotent: delivery is at least once.
 *
 * @param <T> what the payload is decoded to
 */
@FunctionalInterface
public interface TypedHandler<T> {

  /**
   * Handles one message.
   *
   * @param body the decoded payload
   * @param delivery the message and its lease
   * @throws Exception to say that the attempt failed
   */
  void handle(T body, Delivery delivery) throws Exception;
}
