package dev.outbox4j.spring;

import dev.outbox4j.OutboxException;
import dev.outbox4j.OutboxSubscriber;
import dev.outbox4j.OutboxSubscribers;
import dev.outbox4j.SubscriberHealth;
import java.util.List;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.springframework.beans.factory.DisposableBean;
import org.springframework.beans.factory.SmartInitializingSingleton;
import org.springframework.context.ApplicationContext;
import org.springframework.context.ApplicationListener;
import org.springframework.context.SmartLifecycle;
import org.springframework.context.event.ContextClosedEvent;
import org.springframework.core.Ordered;

/**
 * Makes the subscribers once all beans are there, starts them with the context, and drains them
 * first when it closes: before the meter registries, the schedulers, the web server and the pool,
 * so that handlers may still use all of them, and meters see the last outcomes.
 */
final class OutboxLifecycle
    implements SmartInitializingSingleton,
        SmartLifecycle,
        ApplicationListener<ContextClosedEvent>,
        DisposableBean,
        Ordered {
  private static final Logger log = LoggerFactory.getLogger(OutboxLifecycle.class);

  private final SubscriberFactory factory;
  private final OutboxSchemaInitializer schema;
  private final ApplicationContext context;
  private final boolean autoStart;
  private volatile OutboxSubscribers subscribers = OutboxSubscribers.of();
  private volatile boolean running;
  private volatile boolean startDue;

  OutboxLifecycle(
      SubscriberFactory factory,
      OutboxSchemaInitializer schema,
      ApplicationContext context,
      boolean autoStart) {
    this.factory = factory;
    this.schema = schema;
    this.context = context;
    this.autoStart = autoStart;
    this.startDue = autoStart;
  }

  @Override
  public void afterSingletonsInstantiated() {
    List<OutboxSubscriber> all = factory.create();
    subscribers = grouped(all);
    schema.complete(factory.roles(all)); // after what a slip has refused
    if (all.isEmpty()) {
      log.info("No @OutboxHandler was found: this service publishes, and handles no messages");
    }
  }

  private static OutboxSubscribers grouped(List<OutboxSubscriber> all) {
    try {
      return OutboxSubscribers.of(all);
    } catch (IllegalArgumentException twoOfOneName) {
      throw new OutboxException(String.valueOf(twoOfOneName.getMessage()), twoOfOneName);
    }
  }

  SubscriberFactory factory() {
    return factory;
  }

  /** What each subscriber knows of itself, in the order of the queues. */
  List<SubscriberHealth> health() {
    return subscribers.health();
  }

  /** Tells whether subscribers are meant to run: with the context, or since somebody said so. */
  boolean startDue() {
    return startDue;
  }

  @Override
  public void start() {
    startDue = true; // also if it fails
    if (!running) {
      subscribers.start();
      running = true;
    }
  }

  /** A child's event comes here, too; the child does not end what its parent runs. */
  @Override
  public void onApplicationEvent(ContextClosedEvent event) {
    if (event.getApplicationContext() == context) {
      stop();
    }
  }

  /** A refresh that fails after the start destroys the beans, and says nothing of a close. */
  @Override
  public void destroy() {
    stop();
  }

  /** Before those that close meter registries and schedulers at the same event. */
  @Override
  public int getOrder() {
    return HIGHEST_PRECEDENCE;
  }

  /** On another thread the context would go on closing meanwhile. */
  @Override
  public boolean supportsAsyncExecution() {
    return false;
  }

  /** For a pause of the context; a close has drained them by its event before. */
  @Override
  public void stop() {
    if (running) {
      try {
        subscribers.stop();
      } catch (OutboxException byHandler) {
        log.warn(
            "A handler closes the context, and the subscribers wait for that very handler until"
                + " the graceful timeout; its message will come again. Close the context on another"
                + " thread, and do not wait for it: {}",
            byHandler.getMessage());
        stopOnAnotherThread(subscribers);
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

  /** Above the web server's, so it starts after that and, in a pause, stops before it. */
  @Override
  public int getPhase() {
    return SmartLifecycle.DEFAULT_PHASE;
  }
}
