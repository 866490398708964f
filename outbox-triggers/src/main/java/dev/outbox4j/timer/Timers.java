package dev.outbox4j.timer;

import dev.outbox4j.AckMode;
import dev.outbox4j.OutboxMessage;
import dev.outbox4j.OutboxSubscriber;
import dev.outbox4j.RetryPolicy;
import dev.outbox4j.dlq.DeadLetterQueue;
import dev.outbox4j.internal.OneLine;
import dev.outbox4j.postgres.PostgresOutbox;
import dev.outbox4j.spi.NotificationSource;
import dev.outbox4j.timer.internal.NodeState;
import dev.outbox4j.timer.internal.Observer;
import dev.outbox4j.timer.internal.RunHandlers;
import dev.outbox4j.timer.internal.TickLoop;
import dev.outbox4j.triggers.internal.Applications;
import dev.outbox4j.triggers.internal.InnerSubscriber;
import java.nio.charset.StandardCharsets;
import java.sql.Connection;
import java.time.InstantSource;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/**
 * The timers of an application, on this node. Any number of nodes may have the same ones: each
 * instant is run once over all of them, on a node that is free. There is no leader.
 *
 * <p>A run is a message of a queue of the application's timers, {@code timers.<application>}: it
 * has the leases, retries and dead letters that messages have. It ends in the statement that ends
 * its message. Thread-safe.
 */
public final class Timers implements AutoCloseable {
  private final OutboxSubscriber subscriber;
  private final TickLoop loop;
  private final NodeState state;
  private final String application;
  private final Observer observer;
  private final AtomicBoolean started = new AtomicBoolean();
  private final AtomicBoolean stopped = new AtomicBoolean();

  private Timers(
      OutboxSubscriber subscriber,
      TickLoop loop,
      NodeState state,
      String application,
      Observer observer) {
    this.subscriber = subscriber;
    this.loop = loop;
    this.state = state;
    this.application = application;
    this.observer = observer;
  }

  /**
   * Begins to define the timers of an application.
   *
   * @param outbox where their record and their messages are; {@code TimerMigrations} sets it up
   * @param application whose timers they are: those of two applications in one database have
   *     nothing to do with each other. By the rules for names of queues, at most 200 bytes in UTF-8
   * @return a builder; it does no I/O
   * @throws IllegalArgumentException if the name is not allowed
   */
  public static Builder builder(PostgresOutbox outbox, String application) {
    return new Builder(outbox, application);
  }

  /**
   * Starts: puts the timers on record, and begins to look and to handle. Returns at once; while the
   * database cannot be reached it is tried again.
   *
   * @throws IllegalStateException if it was started before
   */
  public void start() {
    if (!started.compareAndSet(false, true)) {
      throw new IllegalStateException("these timers were started before; build others");
    }
    observer.tell(events -> events.started(application, this::health));
    loop.start();
    subscriber.start();
  }

  /**
   * Stops: no instant is decided any more by this node, and runs in progress are waited for, as the
   * subscriber's graceful timeout says. Idempotent.
   */
  public void stop() {
    loop.stop();
    subscriber.stop();
    if (started.get() && stopped.compareAndSet(false, true)) {
      observer.tell(events -> events.stopped(application));
    }
  }

  /** Stops. */
  @Override
  public void close() {
    stop();
  }

  /** {@return what they know of themselves on this node, from memory} */
  public TimersHealth health() {
    return state.health(subscriber.health());
  }

  /** Collects definitions and settings. Not thread-safe; does no I/O. */
  public static final class Builder {
    private static final int MAX_DEPLOYMENT_BYTES = 200;

    private final PostgresOutbox outbox;
    private final String application;
    private final Map<String, Timer> timers = new LinkedHashMap<>();
    private final Map<String, RunHandlers.Entry> handlers = new LinkedHashMap<>();
    private final InnerSubscriber inner;
    private String queue;
    private @Nullable String deployment;
    private final List<TimerEvents> events = new ArrayList<>();
    private InstantSource clock = InstantSource.system();

    private Builder(PostgresOutbox outbox, String application) {
      this.outbox = Objects.requireNonNull(outbox, "outbox");
      this.application = Applications.require(application);
      this.queue = "timers." + application;
      this.inner = new InnerSubscriber(outbox);
    }

    /**
     * Adds a timer.
     *
     * @param timer its definition
     * @param handler what it is for
     * @return this builder
     * @throws IllegalArgumentException if there is one of its name
     */
    public Builder on(Timer timer, TimerHandler handler) {
      return add(timer, RunHandlers.plain(Objects.requireNonNull(handler, "handler")));
    }

    /**
     * Adds a timer whose handler writes to the outbox's database, in the transaction that ends the
     * run.
     *
     * @param timer its definition
     * @param handler what it is for
     * @return this builder
     * @throws IllegalArgumentException if there is one of its name
     */
    public Builder on(Timer timer, TransactionalTimerHandler<Connection> handler) {
      return add(timer, RunHandlers.transactional(Objects.requireNonNull(handler, "handler")));
    }

    private Builder add(Timer timer, RunHandlers.Entry handler) {
      if (timers.putIfAbsent(timer.name(), timer) != null) {
        throw new IllegalArgumentException(
            "there are two timers of the name '%s'; name each by what it does"
                .formatted(timer.name()));
      }
      handlers.put(timer.name(), handler);
      return this;
    }

    /**
     * Sets the queue of the runs' messages.
     *
     * @param queue the queue; default {@code timers.<application>}. All nodes need the same
     * @return this builder
     * @throws IllegalArgumentException if no queue can have the name
     */
    public Builder queue(String queue) {
      OutboxMessage.to(queue);
      this.queue = queue;
      return this;
    }

    /**
     * Names the deployment that this node belongs to, for timers that {@linkplain
     * Timer#runOnStartup run on startup}.
     *
     * @param deployment the same on all nodes of a deployment, such as a version or a build number:
     *     not blank, without control characters, at most 200 bytes in UTF-8
     * @return this builder
     * @throws IllegalArgumentException if it is anything else
     */
    public Builder deployment(String deployment) {
      if (deployment.isBlank() || deployment.chars().anyMatch(Character::isISOControl)) {
        throw new IllegalArgumentException(
            "deployment '%s' is blank or has control characters; name a version or a build"
                .formatted(OneLine.of(deployment)));
      }
      int bytes = deployment.getBytes(StandardCharsets.UTF_8).length;
      if (bytes > MAX_DEPLOYMENT_BYTES) {
        throw new IllegalArgumentException(
            "deployment '%s' has %d bytes; it may have %d, so shorten it"
                .formatted(deployment, bytes, MAX_DEPLOYMENT_BYTES));
      }
      this.deployment = deployment;
      return this;
    }

    /**
     * Sets what wakes this node: for what others do to timers, and for messages of runs.
     *
     * @param source the source
     * @return this builder
     */
    public Builder listen(NotificationSource source) {
      inner.listen(source);
      return this;
    }

    /**
     * Sets where runs go that fail for good.
     *
     * @param deadLetters the dead letters; default {@code <outbox>_dlq} beside the outbox
     * @return this builder
     */
    public Builder deadLetters(DeadLetterQueue deadLetters) {
      inner.deadLetters(deadLetters);
      return this;
    }

    /**
     * Changes settings of the subscriber that handles the runs, such as its workers, its lease or
     * its retry policy. What is said here of its store, its dead letters, the rate limit of the
     * queue, its ack mode, and messages of unknown timers is overwritten.
     *
     * @param change told when this is built
     * @return this builder
     */
    public Builder subscriber(Consumer<OutboxSubscriber.Builder> change) {
      inner.change(change);
      return this;
    }

    /**
     * Adds who observes the timers, such as {@code MicrometerTimerMetrics}.
     *
     * @param observer told of ticks and runs
     * @return this builder
     */
    public Builder events(TimerEvents observer) {
      events.add(Objects.requireNonNull(observer, "observer"));
      return this;
    }

    /** Sets this process's clock, for tests. */
    Builder clock(InstantSource clock) {
      this.clock = clock;
      return this;
    }

    /**
     * Builds what is not started yet.
     *
     * @return the timers
     * @throws IllegalStateException if there is no timer, one runs on startup without a {@link
     *     #deployment}, or the subscriber's settings contradict each other
     */
    public Timers build() {
      if (timers.isEmpty()) {
        throw new IllegalStateException("there is no timer; add one by on(...)");
      }
      timers.values().stream()
          .filter(timer -> timer.runsOnStartup() && deployment == null)
          .findFirst()
          .ifPresent(
              timer -> {
                throw new IllegalStateException(
                    "timer '%s' runs on startup; name the deployment(...), or each node would"
                            .formatted(timer.name())
                        + " ask for a run whenever it starts");
              });
      Observer observer = new Observer(events);
      NodeState state = new NodeState(application, clock);
      RunHandlers runs = new RunHandlers(outbox, application, observer);
      OutboxSubscriber.Builder builder = OutboxSubscriber.builder(queue);
      inner.applyTo(builder);
      builder.store(runs.store()).deadLetters(inner.deadLetters()).ackMode(AckMode.AUTO);
      timers
          .values()
          .forEach(
              timer -> {
                runs.add(builder, timer, Objects.requireNonNull(handlers.get(timer.name())));
                if (!timer.retries()) {
                  builder.retry(timer.name(), RetryPolicy.none());
                }
              });
      runs.addOtherwise(builder, queue);
      return new Timers(
          builder.build(),
          new TickLoop(
              outbox,
              application,
              queue,
              timers,
              deployment,
              inner.source(),
              runs,
              state,
              observer,
              clock),
          state,
          application,
          observer);
    }
  }
}
