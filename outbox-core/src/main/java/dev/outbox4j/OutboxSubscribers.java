package dev.outbox4j;

import dev.outbox4j.internal.life.DefaultSubscriber;
import dev.outbox4j.internal.settings.PoolCheck;
import java.util.ArrayList;
import java.util.List;

/** Several subscribers that start and stop together. Thread-safe as the subscribers are. */
public final class OutboxSubscribers implements AutoCloseable {
  private final List<OutboxSubscriber> subscribers;

  private OutboxSubscribers(List<OutboxSubscriber> subscribers) {
    this.subscribers = List.copyOf(subscribers);
  }

  /**
   * Groups subscribers.
   *
   * @param subscribers the subscribers, with names of their own
   * @return the group
   * @throws IllegalArgumentException if two have the same name
   */
  public static OutboxSubscribers of(OutboxSubscriber... subscribers) {
    return of(List.of(subscribers));
  }

  /**
   * Groups subscribers.
   *
   * @param subscribers the subscribers, with names of their own
   * @return the group
   * @throws IllegalArgumentException if two have the same name
   */
  public static OutboxSubscribers of(List<OutboxSubscriber> subscribers) {
    List<String> names = new ArrayList<>();
    for (OutboxSubscriber subscriber : subscribers) {
      if (names.contains(subscriber.name())) {
        throw new IllegalArgumentException(
            "Two subscribers are named '" + subscriber.name() + "'; give each a name of its own");
      }
      names.add(subscriber.name());
    }
    return new OutboxSubscribers(subscribers);
  }

  /**
   * Starts all, or none: if one throws anything, those already started are stopped. Logs a warning
   * if they may use up a pool, so that nothing of it is left for the service itself.
   *
   * @throws OutboxException if a pool can be seen to be too small for all its subscribers together,
   *     or one refuses
   */
  public void start() {
    PoolCheck.check(
        subscribers.stream()
            .filter(DefaultSubscriber.class::isInstance)
            .map(each -> ((DefaultSubscriber) each).settings())
            .toList());
    List<OutboxSubscriber> started = new ArrayList<>();
    try {
      for (OutboxSubscriber subscriber : subscribers) {
        if (subscriber instanceof DefaultSubscriber known) {
          known.startInPool();
        } else {
          subscriber.start();
        }
        started.add(subscriber);
      }
    } catch (RuntimeException | Error refused) { // an Error: a missing optional driver, say
      try {
        stopAll(started);
      } catch (RuntimeException | Error also) {
        refused.addSuppressed(also);
      }
      throw refused;
    }
  }

  /**
   * Drains all at the same time and waits for the slowest.
   *
   * @throws OutboxException if a handler of one of them calls it; none is stopped then
   */
  public void stop() {
    for (OutboxSubscriber subscriber : subscribers) {
      if (subscriber instanceof DefaultSubscriber known) { // the stoppers are other threads
        known.refuseStopByHandler();
      }
    }
    stopAll(subscribers);
  }

  @Override
  public void close() {
    stop();
  }

  /** {@return the health of each, in the order given} */
  public List<SubscriberHealth> health() {
    return subscribers.stream().map(OutboxSubscriber::health).toList();
  }

  private static void stopAll(List<OutboxSubscriber> subscribers) {
    List<Thread> stoppers = new ArrayList<>();
    for (OutboxSubscriber subscriber : subscribers) {
      Thread stopper = new Thread(subscriber::stop, "outbox-" + subscriber.name() + "-stopper");
      stopper.start();
      stoppers.add(stopper);
    }
    boolean interrupted = false;
    for (Thread stopper : stoppers) {
      while (stopper.isAlive()) {
        try {
          stopper.join();
        } catch (InterruptedException e) {
          interrupted = true; // each stop is bounded by itself, so the wait goes on
        }
      }
    }
    if (interrupted) {
      Thread.currentThread().interrupt();
    }
  }
}
