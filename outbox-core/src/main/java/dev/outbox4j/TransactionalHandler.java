package dev.outbox4j;

/**
 * Handles messages in the transaction that also acks them, and returns nothing: a normal return
 * commits both, an exception rolls both back and retries. {@link Transactional} has the rules.
 *
 * @param <T> what the payload is decoded to
 * @param <C> what it writes with, such as a connection
 */
@FunctionalInterface
public interface TransactionalHandler<T, C> {

  /**
   * Handles one message.
   *
   * @param body the decoded payload
   * @param delivery the message and its lease
   * @param connection in the open transaction; not to be used after the return, nor by other
   *     threads
   * @throws Exception to say that the attempt failed: the transaction is rolled back
   */
  void handle(T body, Delivery delivery, C connection) throws Exception;
}
