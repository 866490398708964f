package dev.outbox4j.spring;

import dev.outbox4j.OutboxSubscriber;
import java.util.Set;

/**
 * Makes subscribers of a context's handlers that the context does not start, for tests that run
 * them themselves. Services need it not. Thread-safe.
 */
public final class ContextSubscribers {
  private final SubscriberFactory factory;

  ContextSubscribers(SubscriberFactory factory) {
    this.factory = factory;
  }

  /** {@return the queues that have an {@link OutboxHandler}, in the order of their names} */
  public Set<String> queues() {
    return factory.queues();
  }

  /**
   * Returns what the context would start: with its handlers, store, dead letters, codec, observers
   * and settings. It does not listen, and says nothing of virtual threads.
   *
   * @param queue the queue
   * @return a new builder
   * @throws IllegalArgumentException if no method handles that queue
   * @throws dev.outbox4j.OutboxException if a setting breaks a rule
   */
  public OutboxSubscriber.Builder builder(String queue) {
    return factory.builder(queue);
  }
}
