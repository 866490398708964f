package dev.outbox4j;

/**
 * Handles messages in the transaction that also settles them, and returns what becomes of each.
 * {@link Outcome#ack()} and {@link Outcome#reschedule} commit, every other outcome rolls back.
 * {@link Transactional} has the rules.
 *
 * @param <T> what the payload is decoded to
 * @param <C> what it writes with, such as a connection
 */
@FunctionalInterface
public interface TransactionalOutcomeHandler<T, C> {

  /**
   * Handles one message.
   *
   * @param body the decoded payload
   * @param delivery the message and its lease
   * @param connection in the open transaction; not to be used after the return, nor by other
   *     threads
   * @return what becomes of the message
   * @throws Exception to say that the attempt failed: the transaction is rolled back
   */
  Outcome handle(T body, Delivery delivery, C connection) throws Exception;
}
