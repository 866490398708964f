package dev.outbox4j.spring;

import dev.outbox4j.AckMode;
import dev.outbox4j.postgres.NotifyMode;
import java.time.Duration;
import java.util.Map;
import java.util.Set;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import org.springframework.boot.context.properties.ConfigurationProperties;
import org.springframework.boot.context.properties.bind.DefaultValue;

/**
 * The settings of the outbox in a Spring Boot service. What is not set keeps the library's default;
 * the rules for each value are those of the builder's method of the same name.
 *
 * @param enabled whether there is an outbox at all
 * @param table the outbox table
 * @param schema the schema that holds it
 * @param deadLetterTable the table of messages that failed for good; {@code <table>_dlq} if not set
 * @param deadLetterSchema the schema of that table; the outbox's if not set
 * @param deleteTerminalFailures whether messages that fail for good are deleted, in place of being
 *     kept as dead letters
 * @param migrate whether the tables are created and upgraded when the service starts, after the
 *     service's own migrations
 * @param validate whether the service refuses to start with a schema that does not fit, and health
 *     is down with one
 * @param validateGrants whether the service refuses to start if its role lacks a grant for what the
 *     service does: subscribing if it has handlers that are started, publishing if a bean has the
 *     {@link OutboxTemplate} or there is no subscriber; nothing without {@code validate}
 * @param autoStart whether subscribers start with the service; without it the service only
 *     publishes, and its handlers are checked but get no message
 * @param allowUnhandledQueues whether {@code queues} and {@code orderedQueues} may name queues that
 *     no method handles, as in tests that bring some of the handlers only
 * @param orderedQueues queues whose messages of one ordering key are handled one at a time and in
 *     the order of their publishing; the migrations make what they need
 * @param pausable whether queues can be paused, for all processes; the migrations make the table
 *     that says which are
 * @param dedupKeys whether messages may be published with dedup keys; the migrations make the table
 *     of those that were
 * @param notifyMode when publishing notifies subscribers; NEVER for transactions that are prepared
 *     for a two-phase commit
 * @param networkTimeout how long a statement of a subscriber may take until its connection is given
 *     up
 * @param listen what wakes subscribers
 * @param depthMetrics gauges of what all queues hold
 * @param subscriber settings of all subscribers
 * @param queues settings of the subscriber of one queue, by the queue's name; they win over those
 *     of all
 */
@ConfigurationProperties("outbox4j")
public record OutboxProperties(
    @DefaultValue("true") boolean enabled,
    @DefaultValue("outbox") String table,
    @DefaultValue("public") String schema,
    @Nullable String deadLetterTable,
    @Nullable String deadLetterSchema,
    @DefaultValue("false") boolean deleteTerminalFailures,
    @DefaultValue("true") boolean migrate,
    @DefaultValue("true") boolean validate,
    @DefaultValue("true") boolean validateGrants,
    @DefaultValue("true") boolean autoStart,
    @DefaultValue("false") boolean allowUnhandledQueues,
    @DefaultValue Set<String> orderedQueues,
    @DefaultValue("false") boolean pausable,
    @DefaultValue("false") boolean dedupKeys,
    @DefaultValue("auto") NotifyMode notifyMode,
    @Nullable Duration networkTimeout,
    @DefaultValue Listen listen,
    @DefaultValue DepthMetrics depthMetrics,
    @DefaultValue Subscriber subscriber,
    @DefaultValue Map<String, Subscriber> queues) {

  /** An empty name is none, so that a profile or a variable can take one back. */
  public OutboxProperties {
    deadLetterTable = emptyAsNone(deadLetterTable);
    deadLetterSchema = emptyAsNone(deadLetterSchema);
  }

  private static @Nullable String emptyAsNone(@Nullable String name) {
    return name == null || name.isEmpty() ? null : name;
  }

  /** {@return whether the concurrency of any queue is limited} */
  boolean limitsConcurrency() {
    return Stream.concat(Stream.of(subscriber), queues.values().stream())
        .anyMatch(each -> each.concurrencyLimit() != null);
  }

  /**
   * What wakes subscribers.
   *
   * @param enabled whether a connection of its own listens for notifications; without it
   *     subscribers poll
   * @param url where it connects, such as {@code jdbc:postgresql://db:5432/shop}; that of the data
   *     source if not set. Needed where the data source goes through a pooler in transaction mode
   * @param username as whom; the data source's user if not set
   * @param password the password; the data source's if not set
   */
  public record Listen(
      @DefaultValue("true") boolean enabled,
      @Nullable String url,
      @Nullable String username,
      @Nullable String password) {

    /** Leaves the password out, and the URL, which may hold one, too. */
    @Override
    public String toString() {
      return "Listen[enabled=" + enabled + ", username=" + username + "]";
    }
  }

  /**
   * Gauges of what all queues hold; of any number of processes one counts at a time.
   *
   * @param enabled whether this process may count and show them, if there is a meter registry; if
   *     not set, unless the registry keeps all in memory, where nobody would see them
   * @param interval how often queues are counted; default 15s
   * @param tableTag the value of the tag {@code table}, where outboxes of several databases share a
   *     registry and a name; {@code <schema>.<table>} if not set
   */
  public record DepthMetrics(
      @Nullable Boolean enabled, @Nullable Duration interval, @Nullable String tableTag) {}

  /**
   * The settings of a subscriber.
   *
   * @param workers handlers that run at once; default 4
   * @param virtualThreads whether handlers run on virtual threads, which need Java 21; default: as
   *     spring.threads.virtual.enabled says
   * @param batchSize the most rows one claim takes; default 1000
   * @param concurrencyLimit the most messages of a queue that are handled at once, by all processes
   *     together; the migrations make the table that it needs; default: no limit
   * @param lease how long a row is promised to its claimer; default 60s
   * @param pollMin the first wait of an idle subscriber; default 10ms
   * @param pollMax the longest wait of an idle subscriber whose listener is up; default 10s
   * @param pollWithoutListener the longest wait while no listener is up; default 1s
   * @param gracefulTimeout how long a stop waits for running handlers; default 15s
   * @param handlerTimeout how long a handler may run; default 5m
   * @param unlimitedHandlerTime whether handlers may run for as long as they like
   * @param maxDeliveries how often a row is claimed before it is a dead letter; default: 20 more
   *     than the retry policy has attempts
   * @param unlimitedDeliveries whether a row is claimed as often as it takes
   * @param ackMode what a handler's end means when it does not say so itself; default AUTO
   * @param holdKeyOnDeadLetter whether an ordering key of an ordered queue waits, once one of its
   *     messages has become a dead letter, until that is resolved; default false
   * @param logExceptionMessages whether logs hold the messages of handlers' exceptions, which may
   *     quote a payload
   * @param retry when failed messages come again
   */
  public record Subscriber(
      @Nullable Integer workers,
      @Nullable Boolean virtualThreads,
      @Nullable Integer batchSize,
      @Nullable Integer concurrencyLimit,
      @Nullable Duration lease,
      @Nullable Duration pollMin,
      @Nullable Duration pollMax,
      @Nullable Duration pollWithoutListener,
      @Nullable Duration gracefulTimeout,
      @Nullable Duration handlerTimeout,
      @Nullable Boolean unlimitedHandlerTime,
      @Nullable Integer maxDeliveries,
      @Nullable Boolean unlimitedDeliveries,
      @Nullable AckMode ackMode,
      @Nullable Boolean holdKeyOnDeadLetter,
      @Nullable Boolean logExceptionMessages,
      @DefaultValue Retry retry) {}

  /**
   * When failed messages come again: after delays that grow from attempt to attempt.
   *
   * @param attempts how many handler runs may fail, the first included; default 10
   * @param initial the delay after the first failure; default 1s
   * @param multiplier what each delay is multiplied by to give the next; default 2
   * @param max the longest delay; default 300s
   * @param jitter the greatest share of a delay that is added or taken, 0 to 1; default 0.2
   * @param maxTotalTime a failure this long after the first one is the last; unbounded if not set
   */
  public record Retry(
      @Nullable Integer attempts,
      @Nullable Duration initial,
      @Nullable Double multiplier,
      @Nullable Duration max,
      @Nullable Double jitter,
      @Nullable Duration maxTotalTime) {}
}
