package dev.outbox4j.internal;

import dev.outbox4j.SubscriberHealth;
import dev.outbox4j.spi.NotificationSource;
import java.util.List;
import java.util.Set;
import java.util.concurrent.atomic.AtomicInteger;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** This subscriber's ear: passes on what concerns its queues, and knows whether it can hear. */
final class Listening implements NotificationSource.Listener, AutoCloseable {
  private static final Logger log = LoggerFactory.getLogger(Listening.class);

  private final String subscriber;
  private final Set<String> queues;
  private final @Nullable NotificationSource source;
  private final GuardedEvents events;
  private final Vitals vitals;
  private final Wakeup wakeup;

  private final AtomicInteger epoch = new AtomicInteger();
  private volatile boolean up;
  private volatile boolean wasUp;
  private volatile boolean reported;
  private NotificationSource.@Nullable Subscription subscription; // confined to open and close

  Listening(
      String subscriber,
      List<String> queues,
      @Nullable NotificationSource source,
      GuardedEvents events,
      Vitals vitals,
      Wakeup wakeup) {
    this.subscriber = subscriber;
    this.queues = Set.copyOf(queues);
    this.source = source;
    this.events = events;
    this.vitals = vitals;
    this.wakeup = wakeup;
  }

  void open(String channel) {
    if (source != null) {
      subscription = source.listen(channel, this);
    }
  }

  /** Returns how often LISTEN came into force. */
  int epoch() {
    return epoch.get();
  }

  boolean up() {
    return up;
  }

  SubscriberHealth.Listener state() {
    if (source == null) {
      return SubscriberHealth.Listener.NONE;
    }
    return up ? SubscriberHealth.Listener.UP : SubscriberHealth.Listener.DOWN;
  }

  @Override
  public void connected() {
    boolean again = wasUp;
    if (reported) {
      log.info("[{}] LISTEN is in force again", subscriber);
    }
    reported = false;
    wasUp = true;
    epoch.incrementAndGet();
    up = true;
    wakeup.signal(); // what was committed while nobody listened
    events.tell(observer -> observer.listenerConnected(subscriber, again));
  }

  @Override
  public void notified(String payload) {
    if (payload.isEmpty() || queues.contains(payload)) {
      wakeup.signal();
    }
  }

  @Override
  public void disconnected(Throwable cause) {
    up = false;
    if (!reported) {
      reported = true;
      log.warn(
          "[{}] LISTEN is not in force, the subscriber polls meanwhile: {}",
          subscriber,
          cause.getMessage());
    }
    vitals.noted("listen: " + cause.getMessage());
    wakeup.signal(); // a wait that counted on notifications is too long now
    events.tell(observer -> observer.listenerDisconnected(subscriber, cause));
  }

  @Override
  public void close() {
    if (subscription != null) {
      subscription.close();
    }
    up = false;
  }
}
