package dev.outbox4j;

import java.util.concurrent.CompletionStage;

/**
 * Starts work that ends later. The message is settled when the stage completes: with the {@link
 * Outcome} it gives, if it gives one, and as a normal return or an exception otherwise. A stage
 * that gives another stage is a failed attempt, since nobody waits for the inner one: use {@code
 * thenCompose} in place of {@code thenApply}. A pending stage counts as a running handler. {@link
 * OutboxSubscriber.Builder} has the rules for all handlers.
 *
 * @param <T> what the payload is decoded to
 */
@FunctionalInterface
public interface AsyncHandler<T> extends ResultHandler<T, CompletionStage<?>> {

  /**
   * Starts the work for one message.
   *
   * @param body the decoded payload
   * @param delivery the message and its lease
   * @return completes when the work is done
   * @throws Exception to say that the attempt failed
   */
  @Override
  CompletionStage<?> handle(T body, Delivery delivery) throws Exception;
}
