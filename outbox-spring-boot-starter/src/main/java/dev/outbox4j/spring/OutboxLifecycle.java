package dev.outbox4j.spring;

import dev.outbox4j.OutboxSubscriber;
import dev.outbox4j.OutboxSubscribers;
import dev.outbox4j.SubscriberHealth;
import java.util.List;
import org.springframework.beans.factory.SmartInitializingSingleton;
import org.springframework.context.SmartLifecycle;

/**
 * Makes the subscribers once all beans are there, starts them with the context, and drains them
 * first when it closes: before the web server, so that handlers may still use it, and before the
 * pool.
 */
final class OutboxLifecycle implements SmartInitializingSingleton, SmartLifecycle {
  private final SubscriberFactory factory;
  private final boolean autoStart;
  private volatile List<OutboxSubscriber> subscribers = List.of();
  private volatile boolean running;

  OutboxLifecycle(SubscriberFactory factory, boolean autoStart) {
    this.factory = factory;
    this.autoStart = autoStart;
  }

  @Override
  public void afterSingletonsInstantiated() {
    subscribers = factory.create();
  }

  /** What each subscriber knows of itself, in the order of the queues. */
  List<SubscriberHealth> health() {
    return subscribers.stream().map(OutboxSubscriber::health).toList();
  }

  @Override
  public void start() {
    if (!running) {
      OutboxSubscribers.of(subscribers).start();
      running = true;
    }
  }

  @Override
  public void stop() {
    if (running) {
      OutboxSubscribers.of(subscribers).stop();
      running = false;
    }
  }

  @Override
  public boolean isRunning() {
    return running;
  }

  @Override
  public boolean isAutoStartup() {
    return autoStart;
  }

  /** Above the web server's, so it starts after that and stops before it. */
  @Override
  public int getPhase() {
    return SmartLifecycle.DEFAULT_PHASE;
  }
}
