package dev.outbox4j;

import java.util.concurrent.CompletionStage;

/**
 * Handles messages and returns what becomes of each: an {@link Outcome}, or a {@link
 * CompletionStage} or publisher of work that ends later. Null and every other value is a failed
 * attempt, since it may stand for work that has not been done. {@link OutboxSubscriber.Builder} has
 * the rules for all handlers.
 *
 * <p>A publisher is a {@link java.util.concurrent.Flow.Publisher} or, with Reactive Streams on the
 * class path, one of theirs, such as a {@code Mono} or {@code Flux}. It is subscribed to once, on
 * the handler's thread, and asked for all that it has. The message is settled when it completes:
 * with the one {@link Outcome} that it gives, if it gives one, and as a normal return or an
 * exception otherwise. Its subscription is cancelled when the handler's time or the lease is over.
 *
 * <p>The result has a type parameter so that a lambda may return either. A class that always
 * returns the same kind implements {@link OutcomeHandler} or {@link AsyncHandler}, where the
 * compiler checks it.
 *
 * @param <T> what the payload is decoded to
 * @param <R> {@link Outcome}, a {@link CompletionStage} or a publisher
 */
@FunctionalInterface
public interface ResultHandler<T, R> {

  /**
   * Handles one message.
   *
   * @param body the decoded payload
   * @param delivery the message and its lease
   * @return an {@link Outcome}, a {@link CompletionStage} or a publisher
   * @throws Exception to say that the attempt failed
   */
  R handle(T body, Delivery delivery) throws Exception;
}
