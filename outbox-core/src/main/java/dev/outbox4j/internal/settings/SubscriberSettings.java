package dev.outbox4j.internal.settings;

import dev.outbox4j.AckMode;
import dev.outbox4j.ExceptionRenderer;
import dev.outbox4j.RateLimit;
import dev.outbox4j.RetryPolicy;
import dev.outbox4j.SubscriberEvents;
import dev.outbox4j.spi.BucketStore;
import dev.outbox4j.spi.DeadLetterWriter;
import dev.outbox4j.spi.NotificationSource;
import dev.outbox4j.spi.OpenDeadLetters;
import dev.outbox4j.spi.OutboxStore;
import dev.outbox4j.spi.PauseStore;
import dev.outbox4j.spi.SlotStore;
import java.time.Duration;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.Executor;
import org.jspecify.annotations.Nullable;

/** All settings of a subscriber, checked. */
public record SubscriberSettings(
    String name,
    List<String> queues,
    OutboxStore store,
    @Nullable NotificationSource source,
    @Nullable DeadLetterWriter deadLetters,
    HandlerTable handlers,
    List<SubscriberEvents> observers,
    Work work,
    Claiming claiming,
    Failing failing,
    Stopping stopping) {

  /** {@return what ordered queues are read from; null if rows are claimed one by one} */
  public @Nullable BucketStore buckets() {
    return claiming.ordered() ? store.buckets().orElseThrow() : null;
  }

  /** {@return where it is said which queues are paused; null if none can be} */
  public @Nullable PauseStore pauses() {
    return claiming.pausable() ? store.pauses().orElseThrow() : null;
  }

  /** {@return what bounds how many rows are leased at once; null if nothing does} */
  public @Nullable SlotStore slots() {
    return claiming.limits().ofAll().isEmpty() ? null : store.slots().orElseThrow();
  }

  /** {@return the dead letters that ordering keys wait for; null if they wait for none} */
  public @Nullable OpenDeadLetters openDeadLetters() {
    return deadLetters != null && failing.holdsKeys() ? deadLetters.open().orElseThrow() : null;
  }

  /** {@return the pooled connections that the engine holds at the peak: to claim, and to settle} */
  public int connections() {
    return 2;
  }

  /** {@return those of them that are of a pool} */
  int connectionsForItself(Object pool) {
    return store.connectionSource() == pool ? connections() : 0;
  }

  /** {@return the connections of a pool that handlers hold at the peak, in transactions} */
  int connectionsForHandlers(Object pool) {
    return handlers.transactions().stream().anyMatch(of -> of.connectionSource() == pool)
        ? work.workers()
        : 0;
  }

  /** {@return what observers may hear of} */
  public SubscriberEvents.Setup setup() {
    return new SubscriberEvents.Setup(
        source != null,
        deadLetters != null,
        work.handlerTimeout() != null,
        !failing.deliveries().equals(Deliveries.UNLIMITED));
  }

  /** How handlers run. */
  public record Work(
      int workers,
      @Nullable Executor executor,
      boolean virtualThreads,
      @Nullable Duration handlerTimeout) {}

  /** How rows are claimed and held. */
  public record Claiming(
      int batchSize,
      Duration lease,
      Duration minPoll,
      Duration maxPoll,
      Duration maxPollUnheard,
      boolean ordered,
      boolean pausable,
      Limits limits,
      Map<String, Integer> weights) {

    /** Copies the map. */
    public Claiming {
      weights = Map.copyOf(weights);
    }

    /** Rows that are claimed one by one. */
    public Claiming(
        int batchSize,
        Duration lease,
        Duration minPoll,
        Duration maxPoll,
        Duration maxPollUnheard) {
      this(batchSize, lease, minPoll, maxPoll, maxPollUnheard, false, false, Limits.NONE, Map.of());
    }
  }

  /**
   * How many messages of a queue are handled.
   *
   * @param ofAll at once, by all processes together
   * @param ofProcess at once, by this subscriber
   * @param rates over time, by this subscriber
   */
  public record Limits(
      Map<String, Integer> ofAll, Map<String, Integer> ofProcess, Map<String, RateLimit> rates) {
    /** No queue is limited. */
    public static final Limits NONE = new Limits(Map.of(), Map.of(), Map.of());

    /** Copies what may change. */
    public Limits {
      ofAll = Map.copyOf(ofAll);
      ofProcess = Map.copyOf(ofProcess);
      rates = Map.copyOf(rates);
    }

    /** {@return the queues that are limited} */
    public Set<String> queues() {
      Set<String> all = new HashSet<>(ofAll.keySet());
      all.addAll(ofProcess.keySet());
      all.addAll(rates.keySet());
      return all;
    }
  }

  /** What happens on failure. */
  public record Failing(
      RetryPolicy retry,
      Map<String, RetryPolicy> retryOfTypes,
      boolean retryChosen,
      AckMode ackMode,
      Deliveries deliveries,
      ExceptionRenderer renderer,
      int maxExceptionBytes,
      boolean logsMessages,
      boolean holdsKeys) {

    /** Copies what may change. */
    public Failing {
      retryOfTypes = Map.copyOf(retryOfTypes);
    }

    /** {@return the policy for messages of a type} */
    public RetryPolicy retry(@Nullable String type) {
      return type == null ? retry : retryOfTypes.getOrDefault(type, retry);
    }

    /** {@return how often a row of a type may be claimed} */
    public long maxDeliveries(@Nullable String type) {
      return deliveries.most(retry(type).maxAttempts());
    }
  }

  /**
   * How often a row may be claimed.
   *
   * @param most so often; null for the attempts of its policy and the spare ones
   * @param spare claims that are no attempts
   */
  public record Deliveries(@Nullable Integer most, int spare) {
    /** As often as it takes. */
    public static final Deliveries UNLIMITED = new Deliveries(Integer.MAX_VALUE, 0);

    long most(int attempts) {
      return most == null ? (long) attempts + spare : most;
    }
  }

  /** How the subscriber stops. */
  public record Stopping(Duration gracefulTimeout, boolean onShutdown) {}
}
