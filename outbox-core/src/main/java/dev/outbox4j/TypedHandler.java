package dev.outbox4j;

/**
 * Handles messages and returns nothing: a normal return acks in {@link AckMode#AUTO}, an exception
 * retries. {@link OutboxSubscriber.Builder} has the rules for all handlers.
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
