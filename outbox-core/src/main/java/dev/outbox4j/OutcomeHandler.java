package dev.outbox4j;

/**
 * Handles messages and returns what becomes of each. {@link OutboxSubscriber.Builder} has the rules
 * for all handlers.
 *
 * @param <T> what the payload is decoded to
 */
@FunctionalInterface
public interface OutcomeHandler<T> extends ResultHandler<T, Outcome> {

  /**
   * Handles one message.
   *
   * @param body the decoded payload
   * @param delivery the message and its lease
   * @return what becomes of the message
   * @throws Exception to say that the attempt failed
   */
  @Override
  Outcome handle(T body, Delivery delivery) throws Exception;
}
