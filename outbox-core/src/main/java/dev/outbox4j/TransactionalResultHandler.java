package dev.outbox4j;

/**
 * Handles messages in the transaction that also settles them, and returns what becomes of each, or
 * work that ends later. {@link Outcome#ack()} and {@link Outcome#reschedule} commit, every other
 * outcome rolls back. {@link Transactional} has the rules.
 *
 * <ul>
 *   <li>On a connection that blocks, as of JDBC, the transaction ends with the return, so an {@link
 *       Outcome} is all that may be returned.
 *   <li>On one that does not, as of R2DBC, it may also return a {@link
 *       java.util.concurrent.CompletionStage} or a publisher, as a {@link ResultHandler} may. The
 *       transaction ends when that does: normally, or with an {@link Outcome}, to commit or as the
 *       outcome says; with a failure to roll back.
 * </ul>
 *
 * <p>Null and every other value is a failed attempt and rolls back: it may stand for work that has
 * not been done.
 *
 * @param <T> what the payload is decoded to
 * @param <C> what it writes with, such as a connection
 * @param <R> what it returns; a parameter so that no method reference may drop its result
 */
@FunctionalInterface
public interface TransactionalResultHandler<T, C, R> {

  /**
   * Handles one message, or begins to.
   *
   * @param body the decoded payload
   * @param delivery the message and its lease
   * @param connection in the open transaction; not to be used once the handler has ended, nor by
   *     two threads at once
   * @return an {@link Outcome}, or what ends later
   * @throws Exception to say that the attempt failed: the transaction is rolled back
   */
  R handle(T body, Delivery delivery, C connection) throws Exception;
}
