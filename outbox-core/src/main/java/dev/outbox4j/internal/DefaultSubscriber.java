package dev.outbox4j.internal;

import dev.outbox4j.AckMode;
import dev.outbox4j.OutboxException;
import dev.outbox4j.OutboxSubscriber;
import dev.outbox4j.SubscriberHealth;
import dev.outbox4j.SubscriberState;
import dev.outbox4j.spi.OutboxStore;
import java.time.Duration;
import java.util.OptionalInt;
import java.util.UUID;
import java.util.concurrent.CompletableFuture;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The one implementation of {@link OutboxSubscriber}: its life, as a sequence of {@link Engine}s.
 */
public final class DefaultSubscriber implements OutboxSubscriber {
  private static final Logger log = LoggerFactory.getLogger(DefaultSubscriber.class);

  /** The pooled connections a subscriber holds at the peak. */
  public static final int CONNECTIONS = 2;

  private static final int OWNER_BYTES = 16;

  private final SubscriberSettings settings;
  private final Object lifecycle = new Object();

  // written under the lifecycle lock, read anywhere
  private volatile SubscriberState state = SubscriberState.NEW;
  private volatile @Nullable Engine engine;
  private CompletableFuture<Void> drained = CompletableFuture.completedFuture(null);
  private @Nullable Thread shutdownHook;

  /** Keeps the settings and warns of doubtful ones; does no I/O. */
  public DefaultSubscriber(SubscriberSettings settings) {
    this.settings = settings;
    warnOfDoubtfulSettings();
  }

  /** Returns the store, to count who shares its pool. */
  public OutboxStore store() {
    return settings.store();
  }

  /** Says why a pool cannot serve so many subscribers. */
  public static OutboxException poolTooSmall(int limit, int subscribers) {
    return new OutboxException(
        "The pool has "
            + limit
            + " connection(s), too few for "
            + subscribers
            + " subscriber(s): each needs "
            + CONNECTIONS
            + " (one to claim, one to settle), whatever its workers; give the pool "
            + subscribers * CONNECTIONS
            + " or more, plus what the service itself uses");
  }

  private void warnOfDoubtfulSettings() {
    SubscriberSettings.Claiming claiming = settings.claiming();
    SubscriberSettings.Failing failing = settings.failing();
    if (claiming.lease().compareTo(claiming.maxPoll()) <= 0) {
      warn(
          "lease "
              + claiming.lease()
              + " is not above the longest poll "
              + claiming.maxPoll()
              + ": a row whose owner died may wait for a poll longer than for its lease");
    }
    if (failing.ackMode() == AckMode.REJECT_ON_ERROR && failing.retryChosen()) {
      warn(
          "ackMode REJECT_ON_ERROR dead-letters at the first exception; the retry policy serves only outcomes that ask for a retry, and handlers that run past handlerTimeout");
    }
    if (failing.maxDeliveries() > 0 && failing.retry().maxAttempts() == 1) {
      warn(
          "maxDeliveries is set but the retry policy makes one attempt only; it then bounds crashes only");
    }
    if (settings.deadLetters() == null) {
      warn("no deadLetters(...): messages that fail for good are deleted");
    }
    if (failing.maxDeliveries() == 0) {
      warn(
          "maxDeliveries is unbounded: a message that kills its process comes again for ever; set maxDeliveries(...)");
    }
  }

  private void warn(String doubt) {
    log.warn("[{}] {}", settings.name(), doubt);
  }

  @Override
  public String name() {
    return settings.name();
  }

  @Override
  public void start() {
    String owner = ownerName();
    synchronized (lifecycle) {
      if (state == SubscriberState.RUNNING) {
        return;
      }
      if (state == SubscriberState.DRAINING) {
        throw new OutboxException(
            "Subscriber '" + name() + "' is draining; start it again once stop() has returned");
      }
      OptionalInt limit = settings.store().connectionLimit();
      if (limit.isPresent() && limit.getAsInt() < CONNECTIONS) {
        throw poolTooSmall(limit.getAsInt(), 1);
      }
      Engine next = new Engine(settings, owner);
      engine = next;
      state = SubscriberState.RUNNING;
      next.events().tell(observer -> observer.started(name(), this::health));
      try {
        next.start();
      } catch (RuntimeException | Error refused) {
        state = SubscriberState.STOPPED;
        next.events().tell(observer -> observer.stopped(name()));
        throw refused;
      }
      if (settings.stopping().onShutdown() && shutdownHook == null) {
        addShutdownHook();
      }
    }
    log.info(
        "[{}] started as {}: queues {}, {} workers, lease {}, listener {}",
        name(),
        owner,
        settings.queues(),
        settings.work().workers(),
        settings.claiming().lease(),
        settings.source() == null ? "none" : "on " + settings.store().channel());
  }

  /**
   * Tells people who holds a row: the start of the name, and what makes this run unlike its
   * successor. Short, because a claim writes it into the row and the row should stay on its page.
   */
  private String ownerName() {
    String unique = UUID.randomUUID().toString().substring(0, 8);
    return Utf8.prefix(name(), OWNER_BYTES - 1 - unique.length()) + "/" + unique;
  }

  @Override
  public void stop() {
    Engine running;
    CompletableFuture<Void> done;
    synchronized (lifecycle) {
      if (state == SubscriberState.DRAINING) {
        running = null;
        done = drained;
      } else if (state == SubscriberState.RUNNING) {
        running = engine;
        state = SubscriberState.DRAINING;
        done = new CompletableFuture<>();
        drained = done;
      } else {
        return;
      }
    }
    if (running == null) {
      done.join();
      return;
    }
    try {
      drain(running);
    } finally {
      done.complete(null);
    }
  }

  private void drain(Engine running) {
    long begun = System.nanoTime();
    try {
      boolean clean = running.drain();
      log.info(
          "[{}] stopped after {} ms{}",
          name(),
          Duration.ofNanos(System.nanoTime() - begun).toMillis(),
          clean ? "" : ", not everything in flight was finished");
    } finally {
      synchronized (lifecycle) {
        state = SubscriberState.STOPPED;
        removeShutdownHook();
      }
      running.events().tell(observer -> observer.stopped(name()));
    }
  }

  private void stopInHook() {
    synchronized (lifecycle) {
      shutdownHook = null; // it runs; it can no longer be removed
    }
    stop();
  }

  private void addShutdownHook() {
    Thread hook = new Thread(this::stopInHook, "outbox-" + name() + "-shutdown");
    try {
      Runtime.getRuntime().addShutdownHook(hook);
      shutdownHook = hook;
    } catch (IllegalStateException shuttingDown) {
      log.warn("[{}] started while the JVM is shutting down: nothing will stop it", name());
    }
  }

  private void removeShutdownHook() {
    if (shutdownHook != null) {
      try {
        Runtime.getRuntime().removeShutdownHook(shutdownHook);
      } catch (IllegalStateException shuttingDown) {
        log.debug("[{}] the JVM is shutting down already", name(), shuttingDown);
      }
      shutdownHook = null;
    }
  }

  @Override
  public SubscriberHealth health() {
    Engine current = engine;
    if (current != null) {
      return current.health(state);
    }
    return new SubscriberHealth(
        name(),
        state,
        null,
        null,
        null,
        false,
        settings.source() == null ? SubscriberHealth.Listener.NONE : SubscriberHealth.Listener.DOWN,
        0,
        0,
        Duration.ZERO,
        0);
  }
}
