package dev.outbox4j;

import java.util.List;

/**
 * Handles several messages of a type at once, for bulk writes and for relays to a broker. {@link
 * OutboxSubscriber.Builder} has the rules for all handlers. Beyond them:
 *
 * <ul>
 *   <li>A normal return acks all messages of which nothing else was decided by {@link
 *       Delivery#decide}; in {@link AckMode#MANUAL} those are retried.
 *   <li>If it throws, what was decided stays, acks included; where that is all of them, what it
 *       threw is only logged and told to {@link SubscriberEvents#handled}. The others are handled
 *       again at once, in two halves, and so on, until the message at fault stands alone: only that
 *       one has failed. So a handler that writes should write all or nothing.
 *   <li>A message that has failed before, or whose last owner has gone, is handled alone.
 *   <li>{@code handlerTimeout} bounds each call. If it passes, a message that was handled alone has
 *       failed; of several, each comes again alone.
 * </ul>
 *
 * @param <T> what the payloads are decoded to
 */
@FunctionalInterface
public interface BatchHandler<T> {

  /**
   * Handles messages.
   *
   * @param messages in the order in which they were claimed, at least one; not to be kept
   * @throws Exception to say that the batch failed
   */
  void handle(List<BatchMessage<T>> messages) throws Exception;
}
