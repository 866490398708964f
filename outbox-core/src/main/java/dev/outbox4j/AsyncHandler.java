package dev.outbox4j;

import java.util.concurrent.CompletionStage;

/**
 * Starts work that ends later. The message is settled when the stage completes: with an {@link
 * Outcome} if the stage gives one, as a normal return or an exception otherwise. A pending stage
 * counts as a running handler.
 *
 * <p>Runs on several threads at once, so it must be thread-safe; no database connection of the
 * subscriber is held meanwhile. Must be idempotent: delivery is at least once.
 *
 * @param <T> what the payload is decoded to
 */
@FunctionalInterface
public interface AsyncHandler<T> {

  /**
   * Handles one message.
   *
   * @param body the decoded payload
   * @param delivery the message and its lease
   * @return completes when the work is done
   * @throws Exception to say that the attempt failed
   */
  CompletionStage<?> handle(T body, Delivery delivery) throws Exception;
}
