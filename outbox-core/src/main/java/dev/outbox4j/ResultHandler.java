package dev.outbox4j;

import java.util.concurrent.CompletionStage;

/**
 * Handles messages and returns what becomes of each: an {@link Outcome}, or a {@link
 * CompletionStage} of work that ends later. Null and every other value is a failed attempt, since
 * it may stand for work that has not been done. {@link OutboxSubscriber.Builder} has the rules for
 * all handlers.
 *
 * <p>The result has a type parameter so that a lambda may return either. A class that always
 * returns the same kind implements {@link OutcomeHandler} or {@link AsyncHandler}, where the
 * compiler checks it.
 *
 * @param <T> what the payload is decoded to
 * @param <R> {@link Outcome} or a {@link CompletionStage}
 */
@FunctionalInterface
public interface ResultHandler<T, R> {

  /**
   * Handles one message.
   *
   * @param body the decoded payload
   * @param delivery the message and its lease
   * @return an {@link Outcome} or a {@link CompletionStage}
   * @throws Exception to say that the attempt failed
   */
  R handle(T body, Delivery delivery) throws Exception;
}
