package dev.outbox4j;

/**
 * Handles messages and returns what becomes of each.
 *
 * <p>Runs on several threads at once, so it must be thread-safe; no database connection of the
 * subscriber is held meanwhile. Must be idempotent: delivery is at least once.
 *
 * @param <T> what the payload is decoded to
 */
@FunctionalInterface
public interface OutcomeHandler<T> {

  /**
   * Handles one message.
   *
   * @param body the decoded payload
   * @param delivery the message and its lease
   * @return what becomes of the message
   * @throws Exception to say that the attempt failed
   */
  Outcome handle(T body, Delivery delivery) throws Exception;
}
