package dev.outbox4j.internal.claim;

import dev.outbox4j.OutboxException;
import dev.outbox4j.SubscriberHealth;
import dev.outbox4j.internal.state.EngineHealth;
import dev.outbox4j.internal.state.Events;
import dev.outbox4j.spi.NotificationSource;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Consumer;
import java.util.function.LongSupplier;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Passes on the notifications that concern this subscriber, and knows whether any can come. A
 * notification for a queue concerns it only while it is on watch there. Thread-safe.
 */
public final class ListenState implements NotificationSource.Listener {
  private static final Logger log = LoggerFactory.getLogger(ListenState.class);

  private final String subscriber;
  private final String byName;
  private final String toItself;
  private final @Nullable NotificationSource source;
  private final ListenEcho echo = new ListenEcho();
  private final Events events;
  private final EngineHealth health;
  private final List<Runnable> signals = new CopyOnWriteArrayList<>();
  private final Set<String> watched = ConcurrentHashMap.newKeySet();
  private final AtomicInteger epoch = new AtomicInteger();
  private volatile boolean called;
  private volatile boolean up;
  private volatile boolean wasUp;
  private volatile boolean unheard;
  private volatile boolean closed;
  private NotificationSource.@Nullable Subscription subscription; // guarded by this

  public ListenState(
      String subscriber,
      String owner,
      @Nullable NotificationSource source,
      Events events,
      EngineHealth health) {
    this.subscriber = subscriber;
    this.byName = NotificationSource.BY_NAME + owner;
    this.toItself = NotificationSource.toItself(owner);
    this.source = source;
    this.events = events;
    this.health = health;
  }

  /** Adds what wakes the fetcher, or another one who waits for notifications. */
  public void signal(Runnable signal) {
    signals.add(signal);
  }

  private void signal() {
    signals.forEach(Runnable::run);
  }

  public void open(String channel) {
    if (source == null) {
      return;
    }
    NotificationSource.Subscription opened = source.listen(channel, this);
    synchronized (this) {
      if (!closed) {
        subscription = opened;
        return;
      }
    }
    opened.close(); // stopped meanwhile
  }

  /** Says whether notifications for a queue are to be heard. */
  public void watch(String queue, boolean heard) {
    if (heard) {
      watched.add(queue);
    } else {
      watched.remove(queue);
    }
  }

  /** Tells, once, that another subscriber has woken this one by name. */
  boolean takeCalled() {
    if (!called) {
      return false;
    }
    called = false;
    return true;
  }

  /** Returns how often LISTEN came into force. */
  public int epoch() {
    return epoch.get();
  }

  /** Tells whether LISTEN is in force. */
  public boolean up() {
    return up;
  }

  /**
   * Proves, once for each connection, that LISTEN hears the store: sends a notification to itself,
   * and tells if none has come. For the thread that claims, while it is idle.
   *
   * @param sending sends a notification's text through the store
   * @return how long to wait at the most until the next call, in nanoseconds
   */
  public long prove(Consumer<String> sending, LongSupplier clock) {
    if (source == null) {
      return Long.MAX_VALUE;
    }
    if (takeMissed(clock.getAsLong())) {
      missed();
    }
    if (echo.takeDue(clock.getAsLong())) {
      try {
        sending.accept(toItself);
        echo.sent(clock.getAsLong());
      } catch (Error unsent) {
        echo.unsent();
        throw unsent;
      } catch (RuntimeException unsent) {
        echo.unsent();
        log.debug("[{}] whether LISTEN hears the store is not known yet", subscriber, unsent);
      }
    }
    return echo.left(clock.getAsLong());
  }

  /** In one step, since it may be heard, or the connection may be another, at any moment. */
  private boolean takeMissed(long now) {
    synchronized (echo) {
      if (!echo.takeMissed(now) || !up) { // not heard, as the one before it
        return false;
      }
      up = false;
      unheard = true;
      return true;
    }
  }

  private void missed() {
    String words =
        "LISTEN is connected, and a notification that the subscriber sent to itself through its"
            + " store has not come within "
            + TimeUnit.NANOSECONDS.toSeconds(ListenEcho.LIMIT)
            + " s: the source of listen(...) most likely leads to another database or server; give"
            + " it the address and the database of the store";
    log.warn("[{}] {}; the subscriber polls meanwhile", subscriber, words);
    health.noted("listen: " + words);
    events.listenerDisconnected(new OutboxException(words));
  }

  public SubscriberHealth.Listener state() {
    if (source == null) {
      return SubscriberHealth.Listener.NONE;
    }
    return up ? SubscriberHealth.Listener.UP : SubscriberHealth.Listener.DOWN;
  }

  @Override
  public void connected() {
    synchronized (echo) {
      echo.connected();
      comesUp();
    }
    tellInForce();
  }

  /** By whoever holds the lock of the echo. */
  private void comesUp() {
    epoch.incrementAndGet();
    up = true;
  }

  private void tellInForce() {
    boolean again = wasUp;
    wasUp = true;
    if (unheard) {
      log.info("[{}] LISTEN hears the store", subscriber);
    }
    unheard = false;
    signal(); // what was committed while nobody listened
    events.listenerConnected(again);
  }

  @Override
  public void notified(String payload) {
    if (payload.equals(toItself)) {
      boolean back;
      synchronized (echo) {
        back = echo.heard() && !up;
        if (back) {
          comesUp();
        }
      }
      if (back) {
        tellInForce();
      }
    } else if (payload.equals(byName)) {
      called = true;
      signal();
    } else if (payload.isEmpty() || watched.contains(payload)) {
      signal();
    }
  }

  @Override
  public void disconnected(Throwable cause) {
    boolean lost;
    synchronized (echo) {
      echo.disconnected();
      lost = up; // else one more attempt to come back has failed
      up = false;
      unheard = false; // the source tells of it, once for all its subscribers
    }
    health.noted("listen: " + EngineHealth.words(cause));
    if (lost) {
      signal(); // a wait that counted on notifications is too long now
    }
    events.listenerDisconnected(cause);
  }

  public void close() {
    NotificationSource.Subscription open;
    synchronized (this) {
      closed = true;
      open = subscription;
      subscription = null;
    }
    if (open != null) {
      open.close();
    }
    up = false;
  }
}
