package dev.outbox4j.spring;

import dev.outbox4j.OutboxSubscriber;

/**
 * Sets on a subscriber what no property sets, such as a retry policy for one message type. Every
 * bean of this type is called for every queue that has an {@link OutboxHandler}, after the
 * properties and before the handlers are added, in the order of the beans.
 */
@FunctionalInterface
public interface OutboxSubscriberCustomizer {

  /**
   * Changes the settings of one subscriber.
   *
   * @param queue the queue, which is the subscriber's name, too
   * @param builder the subscriber's builder
   */
  void customize(String queue, OutboxSubscriber.Builder builder);
}
