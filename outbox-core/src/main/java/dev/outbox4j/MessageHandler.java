package dev.outbox4j;

/**
 * Handles messages as bytes. A normal return acks in {@link AckMode#AUTO}, an exception retries.
 *
 * <p>Runs on several threads at once, so it must be thread-safe; no database connection of the
 * subscriber is held meanwhile. Must be idempotent: delivery is at least once.
 */
@FunctionalInterface
public interface MessageHandler {

  /**
   * Handles one message.
   *
   * @param delivery the message and its lease
   * @throws Exception to say that the attempt failed
   */
  void handle(Delivery delivery) throws Exception;
}
