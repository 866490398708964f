package dev.outbox4j.internal.life;

import dev.outbox4j.AckMode;
import dev.outbox4j.OutboxException;
import dev.outbox4j.OutboxSubscriber;
import dev.outbox4j.SubscriberHealth;
import dev.outbox4j.SubscriberState;
import dev.outbox4j.internal.EngineThreads;
import dev.outbox4j.internal.Utf8;
import dev.outbox4j.internal.run.HandlerThread;
import dev.outbox4j.internal.settings.PoolCheck;
import dev.outbox4j.internal.settings.SubscriberSettings;
import java.time.Duration;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import java.util.UUID;
import java.util.function.Supplier;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The one implementation of {@link OutboxSubscriber}: its life, as a sequence of {@link Engine}s.
 */
public final class DefaultSubscriber implements OutboxSubscriber {
  private static final Logger log = LoggerFactory.getLogger(DefaultSubscriber.class);

  private static final int OWNER_BYTES = 16;

  private final SubscriberSettings settings;
  private final EngineThreads threads;
  private final Lifecycle<Engine> life;

  /** One object for all starts, so that observers know a subscriber that started again. */
  private final Supplier<SubscriberHealth> healthSupplier = this::health;

  /** Keeps the settings and warns of doubtful ones; does no I/O. */
  public DefaultSubscriber(SubscriberSettings settings) {
    this.settings = settings;
    this.threads =
        new EngineThreads(settings.name(), Thread.currentThread().getContextClassLoader());
    this.life = new Lifecycle<>(settings.name(), settings.stopping().onShutdown());
    warnOfDoubtfulSettings();
  }

  /** Returns what it was built with. */
  public SubscriberSettings settings() {
    return settings;
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
    Duration network = settings.store().networkTimeout();
    if (network.compareTo(claiming.lease().dividedBy(4)) > 0) {
      warn(
          "the store's network timeout "
              + network
              + " is above a quarter of the lease "
              + claiming.lease()
              + ": one connection that dies silently may cost every lease; lower the one or raise the other");
    }
    if (failing.ackMode() == AckMode.REJECT_ON_ERROR && failing.retryChosen()) {
      warn(
          "ackMode REJECT_ON_ERROR dead-letters at the first exception; the retry policy serves only outcomes that ask for a retry, and handlers that run past handlerTimeout");
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
    PoolCheck.check(List.of(settings));
    startInPool();
  }

  /** Starts without a look at the pool, which was checked for this subscriber and others. */
  public void startInPool() {
    String owner = ownerName();
    boolean begun =
        life.start(
            () -> {
              Engine engine = new Engine(settings, owner, threads);
              engine.events().started(settings.setup(), healthSupplier);
              return engine;
            });
    if (begun) {
      log.info(
          "[{}] started as {}: queues {}, {} workers, lease {}, handler timeout {}, listener {}",
          name(),
          owner,
          settings.queues(),
          settings.work().workers(),
          settings.claiming().lease(),
          settings.work().handlerTimeout() == null ? "none" : settings.work().handlerTimeout(),
          settings.source() == null ? "none" : "on " + settings.store().channel());
    }
  }

  /**
   * Tells people who holds a row: the start of the name, and what makes this run unlike its
   * successor. Short, because a claim writes it into the row and the row should stay on its page.
   */
  private String ownerName() {
    String unique = UUID.randomUUID().toString().substring(0, 8);
    return Utf8.prefix(name(), OWNER_BYTES - 1 - unique.length()) + "/" + unique;
  }

  /**
   * Refuses a stop by one of the subscriber's own handlers.
   *
   * @throws OutboxException if the calling thread runs one
   */
  public void refuseStopByHandler() {
    if (HandlerThread.isOf(settings)) {
      throw new OutboxException(
          "Subscriber '"
              + name()
              + "' cannot be stopped by its own handler: the calling thread runs one of its"
              + " messages, and stop() would wait for it; call stop() on another thread");
    }
  }

  @Override
  public void stop() {
    refuseStopByHandler();
    life.stop();
  }

  @Override
  public SubscriberHealth health() {
    Engine current = life.run();
    SubscriberState state = life.state();
    if (current != null) {
      return current.health(state);
    }
    return new SubscriberHealth(
        name(),
        state,
        Optional.empty(),
        Optional.empty(),
        Optional.empty(),
        false,
        Optional.empty(),
        settings.source() == null ? SubscriberHealth.Listener.NONE : SubscriberHealth.Listener.DOWN,
        0,
        0,
        Optional.empty(),
        Duration.ZERO,
        0,
        settings.buckets() == null
            ? Optional.empty()
            : Optional.of(new SubscriberHealth.Order(0, 0, 0)),
        settings.pauses() == null ? Optional.empty() : Optional.of(Set.of()));
  }
}
