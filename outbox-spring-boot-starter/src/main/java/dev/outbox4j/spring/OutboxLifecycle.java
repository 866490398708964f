package dev.outbox4j.spring;

import dev.outbox4j.OutboxException;
import dev.outbox4j.OutboxSubscriber;
import dev.outbox4j.OutboxSubscribers;
import dev.outbox4j.SubscriberHealth;
import java.util.List;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.springframework.beans.factory.SmartInitializingSingleton;
import org.springframework.context.SmartLifecycle;

/**
 * Makes the subscribers once all beans are there, starts them with the context, and drains them
 * first when it closes: before the web server, so that handlers may still use it, and before the
 * pool.
 */
final class OutboxLifecycle implements SmartInitializingSingleton, SmartLifecycle {
  private static final Logger log = LoggerFactory.getLogger(OutboxLifecycle.class);

  private final SubscriberFactory factory;
  private final boolean autoStart;
  private volatile List<OutboxSubscriber> subscribers = List.of();
  private volatile boolean running;
  private volatile boolean startDue;

  OutboxLifecycle(SubscriberFactory factory, boolean autoStart) {
    this.factory = factory;
    this.autoStart = autoStart;
    this.startDue = autoStart;
  }

  @Override
  public void afterSingletonsInstantiated() {
    subscribers = factory.create();
  }

  SubscriberFactory factory() {
    return factory;
  }

  /** What each subscriber knows of itself, in the order of the queues. */
  List<SubscriberHealth> health() {
    return subscribers.stream().map(OutboxSubscriber::health).toList();
  }

  /** Tells whether subscribers are meant to run: with the context, or since somebody said so. */
  boolean startDue() {
    return startDue;
  }

  @Override
  public void start() {
    startDue = true; // also if it fails
    if (!running) {
      OutboxSubscribers.of(subscribers).start();
      running = true;
    }
  }

  @Override
  public void stop() {
    if (running) {
      OutboxSubscribers all = OutboxSubscribers.of(subscribers);
      try {
        all.stop();
      } catch (OutboxException byHandler) {
        log.warn(
            "A handler closes the context, and the subscribers wait for that very handler until"
                + " the graceful timeout; its message will come again. Close the context on another"
                + " thread, and do not wait for it: {}",
            byHandler.getMessage());
        stopOnAnotherThread(all);
      }
      running = false;
    }
  }

  /** Leaving them running would have them work on a pool that the context is about to close. */
  private static void stopOnAnotherThread(OutboxSubscribers all) {
    Thread stopper = new Thread(all::stop, "outbox-stopper");
    stopper.start();
    while (stopper.isAlive()) {
      try {
        stopper.join();
      } catch (InterruptedException e) {
        // the drain's own, at the end of the timeout; kept, it would break the rest of the close
        log.debug("The graceful timeout of the handler that closes the context is over", e);
      }
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
