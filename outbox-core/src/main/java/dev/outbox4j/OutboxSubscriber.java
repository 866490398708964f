package dev.outbox4j;

import dev.outbox4j.internal.Utf8;
import dev.outbox4j.internal.life.DefaultSubscriber;
import dev.outbox4j.internal.run.SoleExecutor;
import dev.outbox4j.internal.settings.HandlerTable;
import dev.outbox4j.internal.settings.SettingFaults;
import dev.outbox4j.internal.settings.SubscriberSettings;
import dev.outbox4j.internal.settings.Yielding;
import dev.outbox4j.spi.DeadLetterWriter;
import dev.outbox4j.spi.DeadLetters;
import dev.outbox4j.spi.NotificationSource;
import dev.outbox4j.spi.OutboxStore;
import dev.outbox4j.spi.PayloadCodec;
import java.time.Duration;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.concurrent.Executor;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/**
 * Claims messages of one or more queues and runs handlers on them: at least once, each under a
 * lease, with retries, until it is acked, rejected or dead-lettered. Thread-safe.
 *
 * <p>Built by {@link #builder(String)}, which does no I/O. A subscriber that has stopped may be
 * started again.
 */
public interface OutboxSubscriber extends AutoCloseable {

  /**
   * Starts a builder for a subscriber of one queue that bears the queue's name.
   *
   * @param queue the queue; not blank, at most {@value OutboxMessage#MAX_NAME_BYTES} bytes in UTF-8
   * @return a builder
   */
  static Builder builder(String queue) {
    return new Builder(queue);
  }

  /** {@return the subscriber's name, as in its threads, logs and metrics} */
  String name();

  /**
   * Starts the subscriber's threads. Does nothing if it runs. A database that does not answer is no
   * error: the subscriber keeps trying, and {@link #health()} says so. A pool that it may use up is
   * warned about.
   *
   * @throws OutboxException if the pool can be seen to be too small, or the subscriber is draining
   */
  void start();

  /**
   * Drains: claims no more, gives back what no handler has begun, lets running handlers finish
   * within the graceful timeout and writes their outcomes. Blocks until then, at most 5 s longer
   * than the graceful timeout. Does nothing if it is not running; a second caller waits for the
   * first one's drain.
   *
   * @throws OutboxException if a handler of this subscriber calls it, or an observer or policy on
   *     the handler's thread: it would wait for itself; let another thread do it
   */
  void stop();

  /** Stops the subscriber. */
  @Override
  default void close() {
    stop();
  }

  /**
   * {@return what the subscriber knows of itself, from memory; cheap enough for any health
   * endpoint}
   */
  SubscriberHealth health();

  /**
   * Collects the settings of a subscriber. Not thread-safe.
   *
   * <p><b>Handlers.</b> A handler returns nothing, an {@link Outcome}, a {@link
   * java.util.concurrent.CompletionStage} or a {@linkplain ResultHandler publisher}, or throws. It
   * runs on several threads at once, so it must be thread-safe. It must be idempotent: delivery is
   * at least once. No database connection of the subscriber is held while it runs.
   */
  final class Builder {
    /** Handlers that run at once: {@value}. */
    public static final int DEFAULT_WORKERS = 4;

    /** The most rows one claim takes: {@value}. */
    public static final int DEFAULT_BATCH_SIZE = 1_000;

    /** How long a row is promised to its claimer: 60 s, renewed at half of it. */
    public static final Duration DEFAULT_LEASE = Duration.ofSeconds(60);

    /** The first wait of an idle subscriber: 10 ms; it doubles from there. */
    public static final Duration DEFAULT_MIN_POLL = Duration.ofMillis(10);

    /** The longest wait of an idle subscriber whose listener is up: 10 s. */
    public static final Duration DEFAULT_MAX_POLL = Duration.ofSeconds(10);

    /**
     * The longest wait of an idle subscriber without a listener, or whose listener is down: 1 s.
     */
    public static final Duration DEFAULT_MAX_POLL_UNHEARD = Duration.ofSeconds(1);

    /** How long a drain waits for running handlers: 15 s. */
    public static final Duration DEFAULT_GRACEFUL_TIMEOUT = Duration.ofSeconds(15);

    /** How long a handler may run: 5 min. */
    public static final Duration DEFAULT_HANDLER_TIMEOUT = Duration.ofMinutes(5);

    /** The claims of a row beyond the attempts of its retry policy: {@value}. */
    public static final int DEFAULT_SPARE_DELIVERIES = 20;

    /** The size of a rendered exception in the dead-letter table: {@value} bytes in UTF-8. */
    public static final int DEFAULT_MAX_EXCEPTION_BYTES = 8 * 1024;

    /** The largest {@link #concurrencyLimit}: {@value}. */
    public static final int MAX_CONCURRENCY_LIMIT = 1_000;

    /** The largest {@link #weight}: {@value}. */
    public static final int MAX_WEIGHT = 100;

    private final Set<String> queues = new LinkedHashSet<>();
    private final Map<String, Integer> concurrencyLimits = new LinkedHashMap<>();
    private final Map<String, Integer> processLimits = new LinkedHashMap<>();
    private final Map<String, RateLimit> rateLimits = new LinkedHashMap<>();
    private final Map<String, Yielding> yieldings = new LinkedHashMap<>();
    private final Map<String, Integer> weights = new LinkedHashMap<>();
    private final HandlerTable.Builder handlers = new HandlerTable.Builder();
    private final List<SubscriberEvents> observers = new ArrayList<>();
    private String name;
    private @Nullable OutboxStore store;
    private @Nullable NotificationSource source;
    private @Nullable DeadLetters deadLetters;
    private boolean deletesTerminalFailures;
    private @Nullable Executor executor;
    private boolean virtualThreads;
    private int workers = DEFAULT_WORKERS;
    private int batchSize = DEFAULT_BATCH_SIZE;
    private boolean ordered;
    private boolean pausable;
    private boolean holdsKeys;
    private Duration lease = DEFAULT_LEASE;
    private Duration minPoll = DEFAULT_MIN_POLL;
    private Duration maxPoll = DEFAULT_MAX_POLL;
    private Duration maxPollUnheard = DEFAULT_MAX_POLL_UNHEARD;
    private Duration gracefulTimeout = DEFAULT_GRACEFUL_TIMEOUT;
    private @Nullable Duration handlerTimeout;
    private boolean unlimitedHandlerTime;
    private @Nullable RetryPolicy retry;
    private final Map<String, RetryPolicy> retryOfTypes = new LinkedHashMap<>();
    private AckMode ackMode = AckMode.AUTO;
    private @Nullable Integer maxDeliveries;
    private boolean unlimitedDeliveries;
    private int maxExceptionBytes = DEFAULT_MAX_EXCEPTION_BYTES;
    private ExceptionRenderer renderer = ExceptionRenderer.stackTrace();
    private boolean logsMessages;
    private boolean stopOnShutdown;

    private Builder(String queue) {
      this.name = OutboxMessage.requireName("queue", queue);
      this.queues.add(queue);
    }

    /**
     * Subscribes to further queues; claims go round them in turn.
     *
     * @param more queue names
     * @return this builder
     */
    public Builder queues(String... more) {
      for (String queue : more) {
        queues.add(OutboxMessage.requireName("queue", queue));
      }
      return this;
    }

    /**
     * Names the subscriber; needed where one process runs several on one queue.
     *
     * @param name used in thread names, logs and metrics, and its first letters in {@code
     *     leased_by}; default: the first queue
     * @return this builder
     */
    public Builder name(String name) {
      this.name = OutboxMessage.requireName("name", name);
      return this;
    }

    /**
     * Sets where rows are claimed. Required.
     *
     * @param store the store
     * @return this builder
     */
    public Builder store(OutboxStore store) {
      this.store = Objects.requireNonNull(store, "store");
      return this;
    }

    /**
     * Sets what wakes the subscriber; without one it polls only. Hand the same object to all
     * subscribers of a table, so that they share a connection.
     *
     * @param source the source
     * @return this builder
     */
    public Builder listen(NotificationSource source) {
      this.source = Objects.requireNonNull(source, "source");
      return this;
    }

    /**
     * Sets where terminal failures go. Required, unless they are {@linkplain
     * #deleteTerminalFailures() deleted}.
     *
     * @param deadLetters the dead letters
     * @return this builder
     */
    public Builder deadLetters(DeadLetters deadLetters) {
      this.deadLetters = Objects.requireNonNull(deadLetters, "deadLetters");
      return this;
    }

    /**
     * Deletes messages that fail for good, in place of {@link #deadLetters}. Each is logged as an
     * error, without its payload, which is gone then.
     *
     * @return this builder
     */
    public Builder deleteTerminalFailures() {
      this.deletesTerminalFailures = true;
      return this;
    }

    /**
     * Sets the codec of typed handlers. {@code byte[]}, {@link Payload} and {@link String} need
     * none.
     *
     * @param codec the codec
     * @return this builder
     */
    public Builder codec(PayloadCodec codec) {
      handlers.codec(codec);
      return this;
    }

    /**
     * Handles messages of a type, decoded, with a handler that returns nothing.
     *
     * <p>If the compiler says that {@code on} is ambiguous, write braces, which say whether the
     * result matters: {@code (order, delivery) -> { ship(order); }} drops what {@code ship}
     * returns, {@code (order, delivery) -> { return decide(order); }} hands it on. A lambda that
     * never returns, since it always throws, needs the types of its parameters: {@code (Order
     * order, Delivery delivery) -> { throw ...; }}. A method reference such as {@code this::decide}
     * hands on what the method returns.
     *
     * @param type the message type; not blank, at most {@value OutboxMessage#MAX_NAME_BYTES} bytes
     *     in UTF-8
     * @param bodyType what to decode the payload to
     * @param handler the handler
     * @param <T> the same as {@code bodyType}
     * @return this builder
     * @throws IllegalArgumentException if the type has a handler already
     */
    @SuppressWarnings("overloads") // on purpose: no lambda may drop its result by accident
    public <T> Builder on(String type, Class<T> bodyType, TypedHandler<T> handler) {
      handlers.add(OutboxMessage.requireName("type", type), bodyType, handler);
      return this;
    }

    /**
     * Handles messages of a type, decoded, with a handler that returns an {@link Outcome}, a {@link
     * java.util.concurrent.CompletionStage} or a publisher; any other value is a failed attempt. If
     * the compiler says that {@code on} is ambiguous, write braces: see {@link #on(String, Class,
     * TypedHandler)}.
     *
     * @param type the message type; not blank, at most {@value OutboxMessage#MAX_NAME_BYTES} bytes
     *     in UTF-8
     * @param bodyType what to decode the payload to
     * @param handler the handler
     * @param <T> the same as {@code bodyType}
     * @param <R> what the handler returns
     * @return this builder
     * @throws IllegalArgumentException if the type has a handler already
     */
    @SuppressWarnings("overloads") // on purpose: no lambda may drop its result by accident
    public <T, R> Builder on(String type, Class<T> bodyType, ResultHandler<T, R> handler) {
      handlers.addReturning(OutboxMessage.requireName("type", type), bodyType, handler);
      return this;
    }

    /**
     * Handles messages of a type, decoded to a type with type arguments, with a handler that
     * returns nothing: {@code on("cart.filled", new TypeRef<List<Item>>() {}, this::fill)}. See
     * {@link #on(String, Class, TypedHandler)}.
     *
     * @param type the message type; not blank, at most {@value OutboxMessage#MAX_NAME_BYTES} bytes
     *     in UTF-8
     * @param bodyType what to decode the payload to
     * @param handler the handler
     * @param <T> the same as {@code bodyType}
     * @return this builder
     * @throws IllegalArgumentException if the type has a handler already
     */
    @SuppressWarnings("overloads") // on purpose: no lambda may drop its result by accident
    public <T> Builder on(String type, TypeRef<T> bodyType, TypedHandler<T> handler) {
      handlers.add(OutboxMessage.requireName("type", type), bodyType, handler);
      return this;
    }

    /**
     * Handles messages of a type, decoded to a type with type arguments, with a handler that
     * returns an {@link Outcome}, a {@link java.util.concurrent.CompletionStage} or a publisher.
     * See {@link #on(String, Class, ResultHandler)}.
     *
     * @param type the message type; not blank, at most {@value OutboxMessage#MAX_NAME_BYTES} bytes
     *     in UTF-8
     * @param bodyType what to decode the payload to
     * @param handler the handler
     * @param <T> the same as {@code bodyType}
     * @param <R> what the handler returns
     * @return this builder
     * @throws IllegalArgumentException if the type has a handler already
     */
    @SuppressWarnings("overloads") // on purpose: no lambda may drop its result by accident
    public <T, R> Builder on(String type, TypeRef<T> bodyType, ResultHandler<T, R> handler) {
      handlers.addReturning(OutboxMessage.requireName("type", type), bodyType, handler);
      return this;
    }

    /**
     * Handles messages of a type, decoded, in the transaction that also acks them: {@code
     * on("order.placed", Order.class, outbox.transactional((order, delivery, connection) -> ...))}.
     *
     * @param type the message type; not blank, at most {@value OutboxMessage#MAX_NAME_BYTES} bytes
     *     in UTF-8
     * @param bodyType what to decode the payload to
     * @param handler the handler and its transactions, of the outbox that is this subscriber's
     *     store
     * @param <T> the same as {@code bodyType}
     * @return this builder
     * @throws IllegalArgumentException if the type has a handler already
     */
    public <T> Builder on(String type, Class<T> bodyType, Transactional<T> handler) {
      handlers.addTransactional(
          OutboxMessage.requireName("type", type),
          bodyType,
          handler.transactions(),
          handler.invocation());
      return this;
    }

    /**
     * Handles messages of a type, decoded to a type with type arguments, in the transaction that
     * also acks them. See {@link #on(String, Class, Transactional)}.
     *
     * @param type the message type; not blank, at most {@value OutboxMessage#MAX_NAME_BYTES} bytes
     *     in UTF-8
     * @param bodyType what to decode the payload to
     * @param handler the handler and its transactions, of the outbox that is this subscriber's
     *     store
     * @param <T> the same as {@code bodyType}
     * @return this builder
     * @throws IllegalArgumentException if the type has a handler already
     */
    public <T> Builder on(String type, TypeRef<T> bodyType, Transactional<T> handler) {
      handlers.addTransactional(
          OutboxMessage.requireName("type", type),
          bodyType,
          handler.transactions(),
          handler.invocation());
      return this;
    }

    /**
     * Handles messages of a type, decoded, several at once, with a handler that returns nothing:
     * {@code onBatch("line.sold", Line.class, Batch.of(100), this::insert)}. If the compiler says
     * that {@code onBatch} is ambiguous, write braces: see {@link #on(String, Class,
     * TypedHandler)}.
     *
     * @param type the message type; not blank, at most {@value OutboxMessage#MAX_NAME_BYTES} bytes
     *     in UTF-8
     * @param bodyType what to decode the payloads to
     * @param batch how many at once, and how long to wait for more
     * @param handler the handler
     * @param <T> the same as {@code bodyType}
     * @return this builder
     * @throws IllegalArgumentException if the type has a handler already
     */
    @SuppressWarnings("overloads") // on purpose: no lambda may drop its result by accident
    public <T> Builder onBatch(
        String type, Class<T> bodyType, Batch batch, BatchHandler<T> handler) {
      handlers.addBatch(OutboxMessage.requireName("type", type), bodyType, batch, handler);
      return this;
    }

    /**
     * Handles messages of a type, decoded to a type with type arguments, several at once. See
     * {@link #onBatch(String, Class, Batch, BatchHandler)}.
     *
     * @param type the message type; not blank, at most {@value OutboxMessage#MAX_NAME_BYTES} bytes
     *     in UTF-8
     * @param bodyType what to decode the payloads to
     * @param batch how many at once, and how long to wait for more
     * @param handler the handler
     * @param <T> the same as {@code bodyType}
     * @return this builder
     * @throws IllegalArgumentException if the type has a handler already
     */
    @SuppressWarnings("overloads") // on purpose: no lambda may drop its result by accident
    public <T> Builder onBatch(
        String type, TypeRef<T> bodyType, Batch batch, BatchHandler<T> handler) {
      handlers.addBatch(OutboxMessage.requireName("type", type), bodyType, batch, handler);
      return this;
    }

    /**
     * Handles messages of a type, decoded, several at once, with a handler that returns a {@link
     * java.util.concurrent.CompletionStage} or a publisher; any other value, also an {@link
     * Outcome}, is a failure of the batch. If the compiler says that {@code onBatch} is ambiguous,
     * write braces: see {@link #on(String, Class, TypedHandler)}.
     *
     * @param type the message type; not blank, at most {@value OutboxMessage#MAX_NAME_BYTES} bytes
     *     in UTF-8
     * @param bodyType what to decode the payloads to
     * @param batch how many at once, and how long to wait for more
     * @param handler the handler
     * @param <T> the same as {@code bodyType}
     * @param <R> what the handler returns
     * @return this builder
     * @throws IllegalArgumentException if the type has a handler already
     */
    @SuppressWarnings("overloads") // on purpose: no lambda may drop its result by accident
    public <T, R> Builder onBatch(
        String type, Class<T> bodyType, Batch batch, BatchResultHandler<T, R> handler) {
      handlers.addBatchReturning(OutboxMessage.requireName("type", type), bodyType, batch, handler);
      return this;
    }

    /**
     * Handles messages of a type, decoded to a type with type arguments, several at once, with a
     * handler that returns a {@link java.util.concurrent.CompletionStage} or a publisher; any other
     * value, also an {@link Outcome}, is a failure of the batch. If the compiler says that {@code
     * onBatch} is ambiguous, write braces: see {@link #on(String, Class, TypedHandler)}.
     *
     * @param type the message type; not blank, at most {@value OutboxMessage#MAX_NAME_BYTES} bytes
     *     in UTF-8
     * @param bodyType what to decode the payloads to
     * @param batch how many at once, and how long to wait for more
     * @param handler the handler
     * @param <T> the same as {@code bodyType}
     * @param <R> what the handler returns
     * @return this builder
     * @throws IllegalArgumentException if the type has a handler already
     */
    @SuppressWarnings("overloads") // on purpose: no lambda may drop its result by accident
    public <T, R> Builder onBatch(
        String type, TypeRef<T> bodyType, Batch batch, BatchResultHandler<T, R> handler) {
      handlers.addBatchReturning(OutboxMessage.requireName("type", type), bodyType, batch, handler);
      return this;
    }

    /**
     * Handles messages of a type as they are, with a handler that returns nothing. If the compiler
     * says that {@code on} is ambiguous, write braces: see {@link #on(String, Class,
     * TypedHandler)}.
     *
     * @param type the message type; not blank, at most {@value OutboxMessage#MAX_NAME_BYTES} bytes
     *     in UTF-8
     * @param handler the handler
     * @return this builder
     * @throws IllegalArgumentException if the type has a handler already
     */
    @SuppressWarnings("overloads") // on purpose: no lambda may drop its result by accident
    public Builder on(String type, TypedHandler<Payload> handler) {
      return on(type, Payload.class, handler);
    }

    /**
     * Handles messages of a type as they are, with a handler that returns an {@link Outcome}, a
     * {@link java.util.concurrent.CompletionStage} or a publisher; any other value is a failed
     * attempt. If the compiler says that {@code on} is ambiguous, write braces: see {@link
     * #on(String, Class, TypedHandler)}.
     *
     * @param type the message type; not blank, at most {@value OutboxMessage#MAX_NAME_BYTES} bytes
     *     in UTF-8
     * @param handler the handler
     * @param <R> what the handler returns
     * @return this builder
     * @throws IllegalArgumentException if the type has a handler already
     */
    @SuppressWarnings("overloads") // on purpose: no lambda may drop its result by accident
    public <R> Builder on(String type, ResultHandler<Payload, R> handler) {
      return on(type, Payload.class, handler);
    }

    /**
     * Handles messages of every type that has no handler of its own, and messages without a type,
     * with a handler that returns nothing. If the compiler says that {@code otherwise} is
     * ambiguous, write braces: see {@link #on(String, Class, TypedHandler)}.
     *
     * <p>Without this, such a message is a failed attempt with an {@link OutboxException}, retried
     * and in the end dead-lettered: it may be meant for a newer version of the service. It is
     * dead-lettered at once in ack mode {@link AckMode#REJECT_ON_ERROR}, and by a retry policy that
     * does not retry {@code OutboxException}, such as {@link RetryPolicy#retryOnlyOn} with other
     * classes.
     *
     * @param handler the handler
     * @return this builder
     * @throws IllegalArgumentException if there is such a handler already
     */
    @SuppressWarnings("overloads") // on purpose: no lambda may drop its result by accident
    public Builder otherwise(TypedHandler<Payload> handler) {
      handlers.fallback(handler);
      return this;
    }

    /**
     * Handles messages of every type that has no handler of its own, and messages without a type,
     * with a handler that returns an {@link Outcome}, a {@link
     * java.util.concurrent.CompletionStage} or a publisher; see {@link #otherwise(TypedHandler)}.
     *
     * @param handler the handler
     * @param <R> what the handler returns
     * @return this builder
     * @throws IllegalArgumentException if there is such a handler already
     */
    @SuppressWarnings("overloads") // on purpose: no lambda may drop its result by accident
    public <R> Builder otherwise(ResultHandler<Payload, R> handler) {
      handlers.fallbackReturning(handler);
      return this;
    }

    /**
     * Handles messages of every type that has no handler of its own, and messages without a type,
     * in the transaction that also acks them; see {@link #otherwise(TypedHandler)}.
     *
     * @param handler the handler and its transactions, of the outbox that is this subscriber's
     *     store
     * @return this builder
     * @throws IllegalArgumentException if there is such a handler already
     */
    public Builder otherwise(Transactional<Payload> handler) {
      handlers.fallbackTransactional(handler.transactions(), handler.invocation());
      return this;
    }

    /**
     * Sets how many handlers run at once.
     *
     * @param workers 1 to 10,000; default {@value #DEFAULT_WORKERS}
     * @return this builder
     */
    public Builder workers(int workers) {
      this.workers = Check.range("workers", workers, 1, 10_000);
      return this;
    }

    /**
     * Runs each handler on a virtual thread.
     *
     * @return this builder
     * @throws IllegalStateException on a Java runtime older than 21
     */
    public Builder virtualThreads() {
      if (Runtime.version().feature() < 21) {
        throw new IllegalStateException(
            "Virtual threads need Java 21 or later, this is Java "
                + Runtime.version().feature()
                + "; run on that, or do without them");
      }
      this.virtualThreads = true;
      return this;
    }

    /**
     * Runs handlers on this executor, at most {@link #workers} at once. It is never shut down by
     * the subscriber. It must run tasks on other threads than the caller's, or its tasks count as
     * rejected; and it must not block when it is given one.
     *
     * @param executor the executor
     * @return this builder
     */
    public Builder executor(Executor executor) {
      this.executor = Objects.requireNonNull(executor, "executor");
      return this;
    }

    /**
     * Sets the most rows one claim takes. How many it does take follows the workers: those that are
     * free, and as many as they handle in 50 ms.
     *
     * @param batchSize 1 to 10,000; default {@value #DEFAULT_BATCH_SIZE}
     * @return this builder
     */
    public Builder batchSize(int batchSize) {
      this.batchSize = Check.range("batchSize", batchSize, 1, 10_000);
      return this;
    }

    /**
     * Handles messages of one queue that have the same {@linkplain OutboxMessage#orderingKey()
     * ordering key} one at a time and in the order in which they were published, across all
     * processes. Other keys, and messages without one, are handled beside them. A message that
     * fails holds up its key, and nothing else, until it is acked or dead-lettered.
     *
     * <p>Rows are not leased one by one then: the queue is divided into buckets, and each
     * subscriber owns some of them. The queues must be set up for it by their migration, and every
     * subscriber of them must be ordered.
     *
     * @return this builder
     */
    public Builder ordered() {
      this.ordered = true;
      return this;
    }

    /**
     * Bounds how many messages of one queue are handled at once, by all processes together: what
     * such messages call may bear no more. Every process that reads the queue should set the same
     * limit; where they differ, the largest holds. Messages above it wait in the table. One whose
     * process dies counts until its lease ends. See {@code docs/limits.md}.
     *
     * <p>Needs the table that {@code SlotMigrations} makes. Not with {@link #ordered()}. Each
     * message of a {@linkplain Batch batch} counts.
     *
     * @param queue a queue that this subscriber reads
     * @param most 1 to {@value #MAX_CONCURRENCY_LIMIT}; default: no limit but the workers of each
     *     process
     * @return this builder
     */
    public Builder concurrencyLimit(String queue, int most) {
      concurrencyLimits.put(
          OutboxMessage.requireName("queue", queue),
          Check.range("concurrencyLimit", most, 1, MAX_CONCURRENCY_LIMIT));
      return this;
    }

    /**
     * Bounds how many messages of one queue this subscriber handles at once: so that a slow queue
     * leaves workers to its other queues. It may be set together with {@link #concurrencyLimit},
     * and needs no table. Not with {@link #ordered()}. Each message of a {@linkplain Batch batch}
     * counts. See {@code docs/limits.md}.
     *
     * @param queue a queue that this subscriber reads
     * @param most 1 to {@value #MAX_CONCURRENCY_LIMIT}; default: no limit but {@link #workers}
     * @return this builder
     */
    public Builder concurrencyLimitPerProcess(String queue, int most) {
      processLimits.put(
          OutboxMessage.requireName("queue", queue),
          Check.range("concurrencyLimitPerProcess", most, 1, MAX_CONCURRENCY_LIMIT));
      return this;
    }

    /**
     * Bounds how many messages of one queue this subscriber begins over time, such as ten a second.
     * Each run counts: a message that is retried counts again. Messages above the limit wait in the
     * table. Every process has a limit of its own. Not with {@link #ordered()}. See {@code
     * docs/limits.md}.
     *
     * @param queue a queue that this subscriber reads
     * @param limit how many may begin, such as {@code Resilience4jRateLimit.of(limiter)}; default:
     *     no limit
     * @return this builder
     */
    public Builder rateLimit(String queue, RateLimit limit) {
      OutboxMessage.requireName("queue", queue);
      if (Objects.requireNonNull(limit, "limit") instanceof Yielding yielding) {
        yieldings.put(queue, yielding);
      } else {
        rateLimits.put(queue, limit);
      }
      return this;
    }

    /**
     * Says how large a queue's share of this subscriber is while several of its queues have a
     * backlog: one with weight 3 gets about three times as many messages through as one with weight
     * 1. What one queue does not need, the others get. No queue waits for ever, however small its
     * weight. See {@code docs/limits.md}.
     *
     * @param queue a queue that this subscriber reads
     * @param weight 1 to {@value #MAX_WEIGHT}; default: 1
     * @return this builder
     */
    public Builder weight(String queue, int weight) {
      weights.put(
          OutboxMessage.requireName("queue", queue), Check.range("weight", weight, 1, MAX_WEIGHT));
      return this;
    }

    /**
     * Heeds pauses: while one of its queues is paused, no message of it begins, in any process that
     * runs such a subscriber; handlers that run end as ever. A pause is noticed within a second,
     * and its end at once where the subscriber listens. Until it is known whether a queue is
     * paused, nothing of it begins.
     *
     * <p>Costs a thread, and one small statement every 500 ms. The outbox must be set up for it by
     * the migration of its pauses. A subscriber without it goes on when a queue is paused.
     *
     * @return this builder
     */
    public Builder pausable() {
      this.pausable = true;
      return this;
    }

    /**
     * Lets no further message of an ordering key begin once one of them has become a dead letter,
     * until all dead letters of the key are resolved: redriven or discarded. That is asked once a
     * second. By default the key goes on at once.
     *
     * <p>Needs {@link #ordered()} and {@link #deadLetters}. Every subscriber of the queue should
     * have it.
     *
     * @return this builder
     */
    public Builder holdKeyOnDeadLetter() {
      this.holdsKeys = true;
      return this;
    }

    /**
     * Sets how long a claimed row is promised to this subscriber; it is renewed at half of it, so a
     * handler may run longer. After a crash a row waits this long at the most.
     *
     * @param lease 100 ms to 24 h; default 60 s
     * @return this builder
     */
    public Builder lease(Duration lease) {
      this.lease = Check.range("lease", lease, Duration.ofMillis(100), Duration.ofHours(24));
      return this;
    }

    /**
     * Sets the waits between polls of an idle subscriber: they double from the first to the second.
     *
     * @param min 1 ms to 1 min; default 10 ms
     * @param max not below {@code min}, to 1 h; default 10 s
     * @return this builder
     */
    public Builder poll(Duration min, Duration max) {
      this.minPoll = Check.range("min poll", min, Duration.ofMillis(1), Duration.ofMinutes(1));
      this.maxPoll = Check.range("max poll", max, min, Duration.ofHours(1));
      return this;
    }

    /**
     * Sets the longest wait between polls while no listener is up, and the wait while another
     * subscriber of the queue is on watch; the longest wait of {@link #poll} holds too.
     *
     * @param max 1 ms to 1 h; default 1 s
     * @return this builder
     */
    public Builder pollWithoutListener(Duration max) {
      this.maxPollUnheard =
          Check.range("pollWithoutListener", max, Duration.ofMillis(1), Duration.ofHours(1));
      return this;
    }

    /**
     * Sets how long {@link OutboxSubscriber#stop()} waits for running handlers.
     *
     * @param timeout zero to 24 h; default 15 s
     * @return this builder
     */
    public Builder gracefulTimeout(Duration timeout) {
      this.gracefulTimeout =
          Check.range("gracefulTimeout", timeout, Duration.ZERO, Duration.ofHours(24));
      return this;
    }

    /**
     * Sets how long a handler may run; past it, its thread is interrupted and the message retried,
     * in every {@link AckMode}, unless the retry policy gives it up. From then on {@link
     * Delivery#leaseLost()} tells the handler that the message is no longer its own.
     *
     * @param timeout 1 ms to 24 h; default 5 min
     * @return this builder
     */
    public Builder handlerTimeout(Duration timeout) {
      this.handlerTimeout =
          Check.range("handlerTimeout", timeout, Duration.ofMillis(1), Duration.ofHours(24));
      return this;
    }

    /**
     * Lets handlers run for as long as they like. One that never ends keeps its worker and its
     * message until the process ends.
     *
     * @return this builder
     */
    public Builder unlimitedHandlerTime() {
      this.unlimitedHandlerTime = true;
      return this;
    }

    /**
     * Sets when failed messages come again and when they are given up.
     *
     * @param retry the policy; default {@link RetryPolicy#standard()}
     * @return this builder
     */
    public Builder retry(RetryPolicy retry) {
      this.retry = Objects.requireNonNull(retry, "retry");
      return this;
    }

    /**
     * Sets the same for messages of one type.
     *
     * @param type the message type; not blank, at most {@value OutboxMessage#MAX_NAME_BYTES} bytes
     *     in UTF-8
     * @param retry the policy
     * @return this builder
     */
    public Builder retry(String type, RetryPolicy retry) {
      retryOfTypes.put(
          OutboxMessage.requireName("type", type), Objects.requireNonNull(retry, "retry"));
      return this;
    }

    /**
     * Sets what a handler's end means when it does not say so itself.
     *
     * @param ackMode the mode; default {@link AckMode#AUTO}
     * @return this builder
     */
    public Builder ackMode(AckMode ackMode) {
      this.ackMode = Objects.requireNonNull(ackMode, "ackMode");
      return this;
    }

    /**
     * Dead-letters a row that is claimed more often than this, without calling the handler: a
     * message that kills its process would otherwise come for ever. Each attempt is a claim.
     *
     * @param maxDeliveries 1 or more, and not below the attempts of a retry policy; default:
     *     {@value #DEFAULT_SPARE_DELIVERIES} more than the retry policy of the message's type has
     *     attempts
     * @return this builder
     */
    public Builder maxDeliveries(int maxDeliveries) {
      this.maxDeliveries = Check.range("maxDeliveries", maxDeliveries, 1, Integer.MAX_VALUE);
      return this;
    }

    /**
     * Claims a row as often as it takes, also one that kills its process each time.
     *
     * @return this builder
     */
    public Builder unlimitedDeliveries() {
      this.unlimitedDeliveries = true;
      return this;
    }

    /**
     * Replaces the text that is kept of a handler's exception.
     *
     * @param renderer the renderer; default {@link ExceptionRenderer#stackTrace()}
     * @return this builder
     */
    public Builder renderExceptions(ExceptionRenderer renderer) {
      this.renderer = Objects.requireNonNull(renderer, "renderer");
      return this;
    }

    /**
     * Bounds the text of an exception in the dead-letter table.
     *
     * @param bytes in UTF-8, 64 to 1,048,576; default {@value #DEFAULT_MAX_EXCEPTION_BYTES}
     * @return this builder
     */
    public Builder maxExceptionBytes(int bytes) {
      this.maxExceptionBytes = Check.range("maxExceptionBytes", bytes, 64, 1024 * 1024);
      return this;
    }

    /**
     * Logs the messages of exceptions that handlers throw, and the reasons they give. Without this
     * the log has classes and places only, since a message may quote a payload.
     *
     * @return this builder
     */
    public Builder logExceptionMessages() {
      this.logsMessages = true;
      return this;
    }

    /**
     * Adds an observer, such as metrics.
     *
     * @param observer the observer
     * @return this builder
     */
    public Builder events(SubscriberEvents observer) {
      observers.add(Objects.requireNonNull(observer, "observer"));
      return this;
    }

    /**
     * Stops the subscriber when the JVM shuts down, by a shutdown hook that {@link
     * OutboxSubscriber#start()} adds and {@link OutboxSubscriber#stop()} removes.
     *
     * @return this builder
     */
    public Builder stopOnShutdown() {
      this.stopOnShutdown = true;
      return this;
    }

    /**
     * Returns the subscriber. Does no I/O.
     *
     * @return a new subscriber, not started
     * @throws IllegalStateException if settings are missing or clash; the message lists all faults
     */
    public OutboxSubscriber build() {
      List<String> faults = new ArrayList<>();
      if (store == null) {
        faults.add("store(...) is missing; say where rows are claimed");
      }
      boolean ownThreads = virtualThreads && !(executor instanceof SoleExecutor);
      if (executor != null && ownThreads) {
        faults.add("executor(...) and virtualThreads() are both set; set one of them");
      }
      if (deadLetters == null && !deletesTerminalFailures) {
        faults.add(
            "deadLetters(...) is missing; say where messages go that fail for good, or deleteTerminalFailures()");
      }
      if (deadLetters != null && deletesTerminalFailures) {
        faults.add("deadLetters(...) and deleteTerminalFailures() are both set; set one of them");
      }
      if (handlerTimeout != null && unlimitedHandlerTime) {
        faults.add("handlerTimeout(...) and unlimitedHandlerTime() are both set; set one of them");
      }
      if (maxDeliveries != null && unlimitedDeliveries) {
        faults.add("maxDeliveries(...) and unlimitedDeliveries() are both set; set one of them");
      }
      int attempts =
          Stream.concat(
                  Stream.of(retry == null ? RetryPolicy.standard() : retry),
                  retryOfTypes.values().stream())
              .filter(policy -> !policy.isBoundedByTime())
              .mapToInt(RetryPolicy::maxAttempts)
              .filter(most -> most < Integer.MAX_VALUE)
              .max()
              .orElse(0);
      if (maxDeliveries != null && maxDeliveries < attempts) {
        faults.add(
            "maxDeliveries("
                + maxDeliveries
                + ") is below the "
                + attempts
                + " attempts of a retry policy, each of which is a delivery; raise it, or lower the attempts");
      }
      for (String type : retryOfTypes.keySet()) {
        if (!handlers.serves(type)) {
          faults.add(
              "retry(...) is set for type '"
                  + Utf8.bounded(type, 100)
                  + "', which has no handler; add on(...) or otherwise(...), or correct the type");
        }
      }
      if (handlerTimeout != null
          && handlerTimeout.compareTo(gracefulTimeout) > 0
          && gracefulTimeout.isZero()) {
        faults.add(
            "gracefulTimeout is zero while handlerTimeout is set; give handlers time to end");
      }
      if (ordered && store != null && store.buckets().isEmpty()) {
        faults.add("ordered() is set and the store " + store + " has no ordered queues");
      }
      if (pausable && store != null && store.pauses().isEmpty()) {
        faults.add("pausable() is set and the queues of the store " + store + " cannot be paused");
      }
      faults.addAll(limitFaults());
      DeadLetterWriter writer =
          deadLetters == null || store == null ? null : deadLetters.bind(store);
      if (holdsKeys && !ordered) {
        faults.add(
            "holdKeyOnDeadLetter() is set without ordered(); add it, as only that keeps order");
      }
      if (holdsKeys && (writer == null || writer.open().isEmpty())) {
        faults.add(
            "holdKeyOnDeadLetter() is set, and "
                + (writer == null
                    ? "there are no dead letters"
                    : writer.place() + " cannot be asked")
                + "; use deadLetters(DeadLetterQueue.in(...))");
      }
      faults.addAll(handlers.faults(store));
      if (store == null || !faults.isEmpty()) {
        throw new SettingFaults(name, faults);
      }
      return new DefaultSubscriber(
          new SubscriberSettings(
              name,
              List.copyOf(queues),
              store,
              source,
              writer,
              handlers.build(),
              List.copyOf(observers),
              new SubscriberSettings.Work(
                  workers, executor, ownThreads, unlimitedHandlerTime ? null : handlerLimit()),
              new SubscriberSettings.Claiming(
                  batchSize,
                  lease,
                  minPoll,
                  maxPoll,
                  maxPollUnheard,
                  ordered,
                  pausable,
                  new SubscriberSettings.Limits(concurrencyLimits, processLimits, rates()),
                  weights),
              new SubscriberSettings.Failing(
                  retry == null ? RetryPolicy.standard() : retry,
                  retryOfTypes,
                  retry != null || !retryOfTypes.isEmpty(),
                  ackMode,
                  unlimitedDeliveries
                      ? SubscriberSettings.Deliveries.UNLIMITED
                      : new SubscriberSettings.Deliveries(maxDeliveries, DEFAULT_SPARE_DELIVERIES),
                  renderer,
                  maxExceptionBytes,
                  logsMessages,
                  holdsKeys),
              new SubscriberSettings.Stopping(gracefulTimeout, stopOnShutdown)));
    }

    private Map<String, RateLimit> rates() {
      if (ordered) {
        return rateLimits;
      }
      Map<String, RateLimit> rates = new LinkedHashMap<>(rateLimits);
      yieldings.forEach(
          (queue, yielding) ->
              rates.compute(
                  queue, (same, limit) -> limit == null ? yielding : yielding.and(limit)));
      return rates;
    }

    private List<String> limitFaults() {
      List<String> faults = new ArrayList<>();
      limitFaults("concurrencyLimit", concurrencyLimits.keySet(), faults);
      limitFaults("concurrencyLimitPerProcess", processLimits.keySet(), faults);
      limitFaults("rateLimit", rateLimits.keySet(), faults);
      unreadFaults("weight", weights.keySet(), faults);
      if (!concurrencyLimits.isEmpty() && store != null && store.slots().isEmpty()) {
        faults.add("concurrencyLimit(...) is set and the store " + store + " has no slots");
      }
      return faults;
    }

    private void unreadFaults(String knob, Set<String> named, List<String> faults) {
      named.stream()
          .filter(queue -> !queues.contains(queue))
          .map(
              queue ->
                  knob
                      + "(...) is set for queue '"
                      + Utf8.bounded(queue, 100)
                      + "', which this subscriber does not read; correct the name, or add it to"
                      + " queues(...)")
          .forEach(faults::add);
    }

    private void limitFaults(String knob, Set<String> limited, List<String> faults) {
      unreadFaults(knob, limited, faults);
      if (ordered && !limited.isEmpty()) {
        faults.add(
            knob
                + "(...) and ordered() are both set; set one of them, since ordered queues lease no"
                + " rows that could be counted");
      }
    }

    private Duration handlerLimit() {
      return handlerTimeout == null ? DEFAULT_HANDLER_TIMEOUT : handlerTimeout;
    }
  }
}
