package dev.outbox4j;

/**
 * Handles messages in the transaction that also settles them, and returns what becomes of each.
 * {@link Outcome#ack()} and {@link Outcome#reschedule} commit, every other outcome rolls back. Null
 * and every other value, a stage too, is a failed attempt and rolls back: it may stand for work
 * that has not been done, and the transaction ends with the return. {@link Transactional} has the
 * rules.
 *
 * @param <T> what the payload is decoded to
 * @param <C> what it writes with, such as a connection
 * @param <R> {@link Outcome}; a parameter so that no method reference may drop its result
 */
@FunctionalInterface
public interface TransactionalResultHandler<T, C, R> {

  /**
   * Handles one message.
   *
   * @param body the decoded payload
   * @param delivery the message and its lease
   * @param connection in the open transaction; not to be used after the return, nor by other
   *     threads
   * @return an {@link Outcome}
   * @throws Exception to say that the attempt failed: the transaction is rolled back
   */
  R handle(T body, Delivery delivery, C connection) throws Exception;
}
