package dev.outbox4j.job;

import dev.outbox4j.AckMode;
import dev.outbox4j.ExceptionRenderer;
import dev.outbox4j.OutboxException;
import dev.outbox4j.OutboxMessage;
import dev.outbox4j.OutboxStoreException;
import dev.outbox4j.OutboxSubscriber;
import dev.outbox4j.Payload;
import dev.outbox4j.ResultHandler;
import dev.outbox4j.Transactional;
import dev.outbox4j.TransactionalHandler;
import dev.outbox4j.TransactionalResultHandler;
import dev.outbox4j.TypedHandler;
import dev.outbox4j.dlq.DeadLetterQueue;
import dev.outbox4j.dlq.DeadLetterWorklist;
import dev.outbox4j.postgres.PostgresOutbox;
import dev.outbox4j.postgres.internal.JdbcStore;
import dev.outbox4j.postgres.internal.transactions.JdbcTransactions;
import dev.outbox4j.spi.NotificationSource;
import dev.outbox4j.spi.PayloadCodec;
import dev.outbox4j.triggers.internal.InnerSubscriber;
import java.sql.Connection;
import java.sql.SQLException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.concurrent.Callable;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/**
 * A queue of jobs: a preset of {@link OutboxSubscriber}, with a budget of deliveries, a backoff,
 * and a window within which a job is enqueued once; and what is on record of each job.
 *
 * <p>The same object enqueues jobs, runs them and answers for them. A process that only enqueues
 * builds one without handlers and does not start it. Any number of processes may have the same
 * queue. Its handlers run at least once, and must be idempotent, as those of every subscriber: the
 * window guards the enqueue only. Thread-safe.
 */
public final class JobQueue implements AutoCloseable {
  private static final int MOST_ASKED = 1_000;

  private final String queue;
  private final JobStore store;
  private final JobBodies bodies;
  private final JobDeadLetters deadLetters;
  private final JobLooks looks;
  private final LeftJobs left;
  private final @Nullable OutboxSubscriber subscriber;
  private final PostgresOutbox outbox;
  private final AtomicBoolean started = new AtomicBoolean();

  private JobQueue(
      PostgresOutbox outbox,
      String queue,
      JobStore store,
      JobBodies bodies,
      JobDeadLetters deadLetters,
      JobLooks looks,
      LeftJobs left,
      @Nullable OutboxSubscriber subscriber) {
    this.outbox = outbox;
    this.queue = queue;
    this.store = store;
    this.bodies = bodies;
    this.deadLetters = deadLetters;
    this.looks = looks;
    this.left = left;
    this.subscriber = subscriber;
  }

  /**
   * Begins to define a queue of jobs.
   *
   * @param outbox where its messages and its record are; {@code JobMigrations} sets it up
   * @param queue the queue, by the rules for names of queues. Its messages are all jobs
   * @return a builder; it does no I/O
   * @throws IllegalArgumentException if no queue can have the name
   */
  public static Builder builder(PostgresOutbox outbox, String queue) {
    return new Builder(outbox, queue);
  }

  /** {@return the queue} */
  public String queue() {
    return queue;
  }

  /**
   * Starts: begins to run jobs. Returns at once; while the database cannot be reached it is tried
   * again.
   *
   * @throws IllegalStateException if it has no handler, or was started before, or the pool of
   *     connections is too small; it can be started once that is mended
   */
  public void start() {
    if (subscriber == null) {
      throw new IllegalStateException(
          "job queue '%s' has no handler here; add one by on(...), or only enqueue"
              .formatted(queue));
    }
    if (!started.compareAndSet(false, true)) {
      throw new IllegalStateException(
          "job queue '%s' was started before; build another".formatted(queue));
    }
    try {
      subscriber.start();
    } catch (RuntimeException | Error refused) {
      started.set(false);
      throw refused;
    }
    looks.start();
  }

  /**
   * Stops: no job begins any more on this node, and those that run are waited for, as the
   * subscriber's graceful timeout says. Idempotent. Jobs can still be enqueued.
   */
  public void stop() {
    if (subscriber != null && started.get()) {
      looks.requestStop(); // before anything is waited for
      subscriber.stop();
      looks.stop();
    }
  }

  /** Stops. */
  @Override
  public void close() {
    stop();
  }

  /** {@return what it knows of itself on this node, from memory} */
  public JobsHealth health() {
    return looks.health(
        Optional.ofNullable(subscriber).map(OutboxSubscriber::health), List.copyOf(left.types()));
  }

  /**
   * Enqueues a job in the caller's transaction, unless the same job is in flight or was completed a
   * short time ago.
   *
   * <p>If another transaction is enqueueing the same job, this waits until it ends: if it commits,
   * the job is in flight, and if it rolls back, this enqueues it. A job that is refused as in
   * flight is in the outbox, committed, when it is looked at. Who enqueues several jobs in a
   * transaction should do so in one order everywhere.
   *
   * @param connection the caller's, not in autocommit mode
   * @param job the job
   * @return what was decided; to be refused is no error, and the transaction goes on
   * @throws IllegalArgumentException if the job's type has something against its body, or its key
   *     is not allowed
   * @throws IllegalStateException if the connection is in autocommit mode, or the body needs a
   *     codec and there is none
   * @throws OutboxException if the body cannot be encoded
   * @throws OutboxStoreException if the statement fails; the transaction is to be rolled back
   */
  public EnqueueResult enqueue(Connection connection, Job<?> job) {
    requireTransaction(connection);
    Prepared prepared = prepare(job);
    return store.enqueue(connection, prepared.jobId(), prepared.payload(), prepared.message());
  }

  /**
   * Enqueues a job in a transaction of its own, unless the same job is in flight or was completed a
   * short time ago. To be called again if the answer is lost: the job is then in flight.
   *
   * @param job the job
   * @return what was decided
   * @throws IllegalArgumentException if the job's type has something against its body, or its key
   *     is not allowed
   * @throws IllegalStateException if the body needs a codec and there is none
   * @throws OutboxException if the body cannot be encoded
   * @throws OutboxStoreException if the statement fails
   */
  public EnqueueResult enqueue(Job<?> job) {
    Prepared prepared = prepare(job);
    return store.enqueue(prepared.jobId(), prepared.payload(), prepared.message());
  }

  private record Prepared(String jobId, Payload payload, OutboxMessage message) {}

  private <T> Prepared prepare(Job<T> job) {
    refuse(job);
    Payload payload = bodies.encode(job.type(), job.body());
    return new Prepared(idOf(job, payload), payload, bodies.message(queue, job, payload));
  }

  private static <T> void refuse(Job<T> job) {
    Optional<String> refusal;
    try {
      refusal = job.type().refusal(job.body());
    } catch (RuntimeException e) {
      throw e;
    } catch (Exception e) { // a check is the user's code and may throw anything
      JobBodies.interruptedAgain(e);
      throw new IllegalArgumentException(
          "the check of " + job.type() + " failed: the cause says why", e);
    }
    refusal.ifPresent(
        why -> {
          throw new IllegalArgumentException("a body of " + job.type() + " is refused: " + why);
        });
  }

  private static <T> String idOf(Job<T> job, Payload payload) {
    JobType<T> type = job.type();
    String own = job.ownKey();
    if (own == null && !type.hasKey()) {
      return JobIds.ofContent(type.name(), payload);
    }
    return JobIds.ofKey(type.name(), own == null ? type.key(job.body()) : own);
  }

  private static void requireTransaction(Connection connection) {
    try {
      if (connection.getAutoCommit()) {
        throw new IllegalStateException(
            "the connection is in autocommit mode, so the job would be there without what it"
                + " belongs to; begin a transaction first, or enqueue it without a connection");
      }
    } catch (SQLException e) {
      throw new OutboxException("the connection does not say whether it is in a transaction", e);
    }
  }

  /**
   * Returns the id that a job has, which is made from its type and its content or key.
   *
   * @param job the job
   * @return its id
   * @throws IllegalArgumentException if its key is not allowed
   * @throws IllegalStateException if the body needs a codec and there is none
   */
  public String idOf(Job<?> job) {
    return idOf(job, bodies.encode(job.type(), job.body()));
  }

  /**
   * Returns what is on record of a job. One statement.
   *
   * @param jobId its id
   * @return its status; empty if it was never enqueued, or it ended so long ago that it was deleted
   * @throws OutboxStoreException if the statement fails
   */
  public Optional<JobStatus> status(String jobId) {
    return statuses(List.of(jobId)).stream().findFirst();
  }

  /**
   * Returns what is on record of jobs. One statement.
   *
   * @param jobIds their ids, at most 1,000
   * @return the status of each that is on record, in no order
   * @throws IllegalArgumentException if there are more
   * @throws OutboxStoreException if the statement fails
   */
  public List<JobStatus> statuses(Collection<String> jobIds) {
    List<String> distinct = jobIds.stream().distinct().toList();
    if (distinct.size() > MOST_ASKED) {
      throw new IllegalArgumentException(
          "There are %d ids; ask for %d at once".formatted(distinct.size(), MOST_ASKED));
    }
    return distinct.isEmpty() ? List.of() : store.statuses(distinct);
  }

  /**
   * Takes a sample for {@link JobAlerts}. One statement, of ranges of indexes: it costs no more
   * than some 60,000 of their entries, however many jobs there are.
   *
   * @return how the queue does
   * @throws OutboxStoreException if the statement fails
   */
  public JobSample sample() {
    return store.sample();
  }

  /** {@return its dead letters; does no I/O} */
  public JobDeadLetters deadLetters() {
    return deadLetters;
  }

  @Override
  public String toString() {
    return "JobQueue[" + queue + " of " + outbox.table() + "]";
  }

  /** Collects types, handlers and settings. Not thread-safe; does no I/O. */
  public static final class Builder {
    /** How often a job is delivered at most: {@value}. */
    public static final int DEFAULT_BUDGET = 5;

    /** For how long a job that is in flight is not enqueued again: 180 s. */
    public static final Duration DEFAULT_IN_FLIGHT_WINDOW = Duration.ofMinutes(3);

    /** For how long a completed job is not enqueued again: 3,600 s. */
    public static final Duration DEFAULT_COMPLETED_WINDOW = Duration.ofHours(1);

    /** For how long a job that has ended stays on record: 7 days. */
    public static final Duration DEFAULT_KEEP = Duration.ofDays(7);

    private static final Duration LONGEST = Duration.ofDays(3_650);

    private final PostgresOutbox outbox;
    private final String queue;
    private final Map<String, JobType<?>> types = new LinkedHashMap<>();
    private final InnerSubscriber inner;
    private final List<Consumer<OutboxSubscriber.Builder>> handlers = new ArrayList<>();
    private int budget = DEFAULT_BUDGET;
    private JobBackoff backoff = JobBackoff.standard();
    private Duration inFlightWindow = DEFAULT_IN_FLIGHT_WINDOW;
    private Duration completedWindow = DEFAULT_COMPLETED_WINDOW;
    private Duration keep = DEFAULT_KEEP;
    private Duration networkTimeout = PostgresOutbox.DEFAULT_NETWORK_TIMEOUT;
    private JobAlerts alerts = JobAlerts.standard();
    private @Nullable PayloadCodec codec;
    private @Nullable Callable<?> probe;
    private @Nullable ExceptionRenderer renderer;

    private Builder(PostgresOutbox outbox, String queue) {
      this.outbox = Objects.requireNonNull(outbox, "outbox");
      OutboxMessage.to(queue); // the rules for names
      this.queue = queue;
      this.inner = new InnerSubscriber(outbox);
    }

    /**
     * Runs jobs of a type, with a handler that returns nothing. If the compiler says that {@code
     * on} is ambiguous, write braces, and the types of the parameters where the lambda always
     * throws, as {@link OutboxSubscriber.Builder#on(String, Class, TypedHandler)} says.
     *
     * @param type the type
     * @param handler the handler
     * @param <T> the body
     * @return this builder
     * @throws IllegalArgumentException if there is another type of its name
     */
    @SuppressWarnings("overloads") // on purpose: no lambda may drop its result by accident
    public <T> Builder on(JobType<T> type, TypedHandler<T> handler) {
      Objects.requireNonNull(handler, "handler");
      add(type);
      handlers.add(builder -> builder.on(type.name(), type.body(), handler));
      return this;
    }

    /**
     * Runs jobs of a type, with a handler that returns an {@code Outcome}, a {@code
     * CompletionStage} or a publisher. {@code Outcome.reject} makes a job {@link JobState#FAILED}.
     *
     * @param type the type
     * @param handler the handler
     * @param <T> the body
     * @param <R> what the handler returns
     * @return this builder
     * @throws IllegalArgumentException if there is another type of its name
     */
    @SuppressWarnings("overloads") // on purpose: no lambda may drop its result by accident
    public <T, R> Builder on(JobType<T> type, ResultHandler<T, R> handler) {
      Objects.requireNonNull(handler, "handler");
      add(type);
      handlers.add(builder -> builder.on(type.name(), type.body(), handler));
      return this;
    }

    /**
     * Runs jobs of a type in the transaction that also ends them, with a handler that returns
     * nothing: what it writes and that the job is completed are there together, or not at all.
     *
     * @param type the type
     * @param handler the handler; it gets a connection whose transaction is open
     * @param <T> the body
     * @return this builder
     * @throws IllegalArgumentException if there is another type of its name
     */
    @SuppressWarnings("overloads") // on purpose: no lambda may drop its result by accident
    public <T> Builder onTransactional(
        JobType<T> type, TransactionalHandler<T, Connection> handler) {
      Objects.requireNonNull(handler, "handler");
      add(type);
      handlers.add(
          builder ->
              builder.on(type.name(), type.body(), Transactional.of(transactions(), handler)));
      return this;
    }

    /**
     * Runs jobs of a type in the transaction that also ends them, with a handler that returns an
     * {@code Outcome}.
     *
     * @param type the type
     * @param handler the handler; it gets a connection whose transaction is open
     * @param <T> the body
     * @param <R> {@code Outcome}
     * @return this builder
     * @throws IllegalArgumentException if there is another type of its name
     */
    @SuppressWarnings("overloads") // on purpose: no lambda may drop its result by accident
    public <T, R> Builder onTransactional(
        JobType<T> type, TransactionalResultHandler<T, Connection, R> handler) {
      Objects.requireNonNull(handler, "handler");
      add(type);
      handlers.add(
          builder ->
              builder.on(type.name(), type.body(), Transactional.of(transactions(), handler)));
      return this;
    }

    private JdbcTransactions transactions() {
      return new JdbcTransactions(
          outbox.dataSource(), outbox.table(), networkTimeout, JobEnds.OF_MESSAGES.ack());
    }

    /**
     * Adds a type that this process does not run, so that dead letters of it can be replayed. To
     * enqueue jobs of a type it need not be added.
     *
     * @param type the type
     * @return this builder
     * @throws IllegalArgumentException if there is another type of its name
     */
    public Builder knows(JobType<?> type) {
      add(type);
      return this;
    }

    private void add(JobType<?> type) {
      if (types.putIfAbsent(type.name(), type) != null) {
        throw new IllegalArgumentException(
            "there are two job types of the name '%s'; name each by what it does"
                .formatted(type.name()));
      }
    }

    /**
     * Sets how often a job is delivered at most: as often its handler may fail, and its process may
     * die in it. A job whose budget is spent becomes a dead letter.
     *
     * @param deliveries 1 to 1,000; default {@value #DEFAULT_BUDGET}
     * @return this builder
     * @throws IllegalArgumentException if it is out of range
     */
    public Builder budget(int deliveries) {
      this.budget = Ranges.require("budget", deliveries, 1, 1_000);
      return this;
    }

    /**
     * Sets how long a job waits after a failed attempt.
     *
     * @param backoff the backoff; default {@link JobBackoff#standard()}
     * @return this builder
     */
    public Builder backoff(JobBackoff backoff) {
      this.backoff = Objects.requireNonNull(backoff, "backoff");
      return this;
    }

    /**
     * Sets for how long a job that is in the outbox is not enqueued again, counted from when it was
     * due first. Once it is over the job may be enqueued beside the one before, so that one that
     * hangs keeps nobody from it. A job that is dead-lettered or deleted can be enqueued at once.
     *
     * @param window 1 ms to 3,650 days; default 180 s
     * @return this builder
     * @throws IllegalArgumentException if it is out of range
     */
    public Builder inFlightWindow(Duration window) {
      this.inFlightWindow = Ranges.require("inFlightWindow", window, Duration.ofMillis(1), LONGEST);
      return this;
    }

    /**
     * Sets for how long a job is not enqueued again after it was completed.
     *
     * @param window zero to 3,650 days; default 3,600 s
     * @return this builder
     * @throws IllegalArgumentException if it is out of range
     */
    public Builder completedWindow(Duration window) {
      this.completedWindow = Ranges.require("completedWindow", window, Duration.ZERO, LONGEST);
      return this;
    }

    /**
     * Sets for how long a job that has ended stays on record. Started queues delete what is older,
     * a part at a time.
     *
     * @param keep 2 to 3,650 days, and not below the window of completed jobs; default 7 days
     * @return this builder
     * @throws IllegalArgumentException if it is out of range
     */
    public Builder keepEnded(Duration keep) {
      this.keep = Ranges.require("keepEnded", keep, Duration.ofDays(2), LONGEST);
      return this;
    }

    /**
     * Sets how long the server's answer to a statement is waited for before the connection is given
     * up. A lease should be at least four times as long.
     *
     * @param timeout 1 ms to 2,147,483,647 ms; default {@link
     *     PostgresOutbox#DEFAULT_NETWORK_TIMEOUT}
     * @return this builder
     * @throws IllegalArgumentException if it is out of range
     */
    public Builder networkTimeout(Duration timeout) {
      this.networkTimeout =
          Ranges.require(
              "networkTimeout",
              timeout,
              Duration.ofMillis(1),
              Duration.ofMillis(Integer.MAX_VALUE));
      return this;
    }

    /**
     * Sets the rules by which {@link JobQueue#health()} tells alerts.
     *
     * @param alerts the rules; default {@link JobAlerts#standard()}
     * @return this builder
     */
    public Builder alerts(JobAlerts alerts) {
      this.alerts = Objects.requireNonNull(alerts, "alerts");
      return this;
    }

    /**
     * Sets what encodes and decodes bodies. {@code byte[]}, {@link Payload} and {@link String} need
     * none.
     *
     * @param codec a thread-safe codec, such as {@code Jackson2Codec.standard()}
     * @return this builder
     */
    public Builder codec(PayloadCodec codec) {
      this.codec = Objects.requireNonNull(codec, "codec");
      return this;
    }

    /**
     * Sets what wakes this node when jobs are enqueued; without it it polls.
     *
     * @param source the source
     * @return this builder
     */
    public Builder listen(NotificationSource source) {
      inner.listen(source);
      return this;
    }

    /**
     * Sets where jobs go that fail for good.
     *
     * @param deadLetters the dead letters; default {@code <outbox>_dlq} beside the outbox
     * @return this builder
     */
    public Builder deadLetters(DeadLetterQueue deadLetters) {
      inner.deadLetters(deadLetters);
      return this;
    }

    /**
     * Sets what tells whether the dependencies of the handlers work, which is asked before dead
     * letters are replayed.
     *
     * @param probe throws if they do not; its result does not matter
     * @return this builder
     */
    public Builder probing(Callable<?> probe) {
      this.probe = Objects.requireNonNull(probe, "probe");
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
     * Changes settings of the subscriber that runs the jobs, such as its workers, its lease, how
     * long a handler may take, or who observes it. What is said here of its store, its codec, its
     * dead letters, its ack mode, its retries, also those of a type, and its greatest number of
     * deliveries is overwritten, and {@code otherwise(...)} is refused: jobs of types that have no
     * handler here are left to other processes. With {@code ordered()}, a job in flight is told as
     * queued.
     *
     * @param change told when this is built
     * @return this builder
     */
    public Builder subscriber(Consumer<OutboxSubscriber.Builder> change) {
      inner.change(change);
      return this;
    }

    /**
     * Builds what is not started yet.
     *
     * @return the queue
     * @throws IllegalStateException if jobs are not kept as long as the window of completed ones,
     *     or the subscriber's settings contradict each other
     * @throws IllegalArgumentException if a setting of the subscriber is refused
     */
    public JobQueue build() {
      if (keep.compareTo(completedWindow) < 0) {
        throw new IllegalStateException(
            "keepEnded is %s and completedWindow is %s; keep jobs at least as long as the window"
                .formatted(keep, completedWindow));
      }
      JobStore store = new JobStore(outbox, queue, inFlightWindow, completedWindow, networkTimeout);
      LeftJobs left = new LeftJobs(store, queue, types.keySet());
      JobBodies bodies = new JobBodies(codec);
      return new JobQueue(
          outbox,
          queue,
          store,
          bodies,
          new JobDeadLetters(
              DeadLetterWorklist.of(outbox, inner.deadLetters()),
              queue,
              types,
              bodies,
              store,
              probe),
          new JobLooks(store, queue, keep, alerts),
          left,
          handlers.isEmpty() ? null : subscriber(left));
    }

    private OutboxSubscriber subscriber(LeftJobs left) {
      OutboxSubscriber.Builder builder = OutboxSubscriber.builder(queue);
      builder.rateLimit(queue, left);
      builder.otherwise(
          (payload, delivery) -> {
            return left.leave(delivery);
          });
      if (renderer != null) {
        builder.renderExceptions(renderer);
      }
      inner.applyTo(builder);
      if (codec != null) {
        builder.codec(codec);
      }
      handlers.forEach(handler -> handler.accept(builder));
      types.keySet().forEach(type -> builder.retry(type, backoff.policy(budget)));
      return builder
          .store(
              new JdbcStore(
                  outbox.dataSource(), outbox.table(), networkTimeout, JobEnds.OF_MESSAGES))
          .deadLetters(inner.deadLetters())
          .ackMode(AckMode.AUTO)
          .retry(backoff.policy(budget))
          .maxDeliveries(budget)
          .build();
    }
  }
}
