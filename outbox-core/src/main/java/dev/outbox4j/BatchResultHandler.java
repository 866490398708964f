package dev.outbox4j;

import java.util.List;

/**
 * Handles several messages of a type at once, as a {@link BatchHandler} does and by its rules, and
 * returns a {@link java.util.concurrent.CompletionStage} or publisher of work that ends later. Null
 * and every other value is a failure of the batch, since it may stand for work that has not been
 * done. So is an {@link Outcome}, which does not say of which message it is.
 *
 * <ul>
 *   <li>The batch is handled when the stage or publisher completes, and has failed if that is with
 *       an exception. Until then it counts as one running handler, and no thread waits for it.
 *   <li>Until then, {@link Delivery#decide} says what becomes of a single message, on any thread.
 *       What the stage completes with does not matter, except that a stage, a publisher or an
 *       {@link Outcome} is a failure of the batch.
 *   <li>The halves of a batch that has failed are handled on a thread of the subscriber, and not on
 *       the one that completed the stage.
 *   <li>The stage, or the subscription, is cancelled when the handler's time is over, or the leases
 *       of all its messages are lost. So return one of its own for each call.
 * </ul>
 *
 * <p>For publishers, {@link ResultHandler} has the rules.
 *
 * @param <T> what the payloads are decoded to
 * @param <R> a {@link java.util.concurrent.CompletionStage} or a publisher
 */
@FunctionalInterface
public interface BatchResultHandler<T, R> {

  /**
   * Handles messages, or starts to.
   *
   * @param messages in the order in which they were claimed, at least one
   * @return a {@link java.util.concurrent.CompletionStage} or a publisher
   * @throws Exception to say that the batch failed
   */
  R handle(List<BatchMessage<T>> messages) throws Exception;
}
