package dev.outbox4j.monitor;

import dev.outbox4j.AckMode;
import dev.outbox4j.ExceptionRenderer;
import dev.outbox4j.OutboxMessage;
import dev.outbox4j.OutboxSubscriber;
import dev.outbox4j.dlq.DeadLetterQueue;
import dev.outbox4j.monitor.internal.Check;
import dev.outbox4j.monitor.internal.CheckHandlers;
import dev.outbox4j.monitor.internal.ExpiryLoop;
import dev.outbox4j.monitor.internal.InstanceStore;
import dev.outbox4j.monitor.internal.LookLoop;
import dev.outbox4j.monitor.internal.NodeState;
import dev.outbox4j.monitor.internal.Observer;
import dev.outbox4j.monitor.internal.RunningChecks;
import dev.outbox4j.postgres.PostgresOutbox;
import dev.outbox4j.spi.NotificationSource;
import dev.outbox4j.spi.PayloadCodec;
import dev.outbox4j.triggers.internal.Applications;
import dev.outbox4j.triggers.internal.InnerSubscriber;
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
 * The monitors of an application, on this node. Any number of nodes may have the same ones: the
 * result of each check is committed once over all of them, by a node that is free. There is no
 * leader.
 *
 * <p>An instance waits as a delayed message of a queue of the application's monitors, {@code
 * monitors.<application>}: it has the leases and dead letters that messages have, and no thread, no
 * connection and no poll of its own. Thread-safe.
 */
public final class Monitors implements AutoCloseable {

  private final OutboxSubscriber subscriber;
  private final LookLoop looks;
  private final ExpiryLoop expiries;
  private final NodeState state;
  private final String application;
  private final Observer observer;
  private final AtomicBoolean started = new AtomicBoolean();
  private final AtomicBoolean stopped = new AtomicBoolean();

  private Monitors(
      OutboxSubscriber subscriber,
      LookLoop looks,
      ExpiryLoop expiries,
      NodeState state,
      String application,
      Observer observer) {
    this.subscriber = subscriber;
    this.looks = looks;
    this.expiries = expiries;
    this.state = state;
    this.application = application;
    this.observer = observer;
  }

  /**
   * Begins to define the monitors of an application.
   *
   * @param outbox where their record and their messages are; {@code MonitorMigrations} sets it up
   * @param application whose monitors they are: those of two applications in one database have
   *     nothing to do with each other. By the rules for names of queues, at most 200 bytes in UTF-8
   * @return a builder; it does no I/O
   * @throws IllegalArgumentException if the name is not allowed
   */
  public static Builder builder(PostgresOutbox outbox, String application) {
    return new Builder(outbox, application);
  }

  static String queueOf(String application) {
    return "monitors." + application;
  }

  static String requireQueue(String queue) {
    OutboxMessage.to(queue); // the rules for names
    return queue;
  }

  /**
   * Starts: begins to run checks that are due. Returns at once; while the database cannot be
   * reached it is tried again.
   *
   * @throws IllegalStateException if it was started before
   */
  public void start() {
    if (!started.compareAndSet(false, true)) {
      throw new IllegalStateException("these monitors were started before; build others");
    }
    observer.tell(events -> events.started(application, this::health));
    looks.start();
    expiries.start();
    subscriber.start();
  }

  /**
   * Stops: no check begins any more on this node, and those that run are waited for, as the
   * subscriber's graceful timeout says. Idempotent.
   */
  public void stop() {
    looks.requestStop();
    subscriber.stop(); // before anything is waited for
    looks.stop();
    expiries.stop(); // until then, since checks that were waited for may have gone on
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
  public MonitorsHealth health() {
    return state.health(subscriber.health());
  }

  /** Collects types and settings. Not thread-safe; does no I/O. */
  public static final class Builder {
    private final PostgresOutbox outbox;
    private final String application;
    private final Map<String, Definition<?>> types = new LinkedHashMap<>();
    private final InnerSubscriber inner;
    private final List<MonitorEvents> events = new ArrayList<>();
    private String queue;
    private @Nullable PayloadCodec codec;
    private ExceptionRenderer renderer = ExceptionRenderer.stackTrace();

    private Builder(PostgresOutbox outbox, String application) {
      this.outbox = Objects.requireNonNull(outbox, "outbox");
      this.application = Applications.require(application);
      this.queue = queueOf(application);
      this.inner = new InnerSubscriber(outbox);
    }

    /** A type and its check. */
    private record Definition<I>(MonitorType<I> type, MonitorCheck<I> check) {
      boolean needsCodec() {
        return !type.input().equals(Json.class);
      }

      Check with(Values values, String application, Observer observer) {
        return new TypedCheck<>(type, check, values, application, observer);
      }
    }

    /**
     * Adds a type.
     *
     * @param type its definition
     * @param check how its instances are checked
     * @param <I> the input of an instance
     * @return this builder
     * @throws IllegalArgumentException if there is one of its name
     */
    public <I> Builder on(MonitorType<I> type, MonitorCheck<I> check) {
      Objects.requireNonNull(check, "check");
      if (types.putIfAbsent(type.name(), new Definition<>(type, check)) != null) {
        throw new IllegalArgumentException(
            "there are two monitor types of the name '%s'; name each by what it watches"
                .formatted(type.name()));
      }
      return this;
    }

    /**
     * Sets what reads inputs and states, and writes states, statuses and outputs. Without one they
     * are {@link Json}. It also encodes the bodies of messages that checks publish.
     *
     * @param codec a codec that writes JSON, such as {@code Jackson2Codec.standard()}
     * @return this builder
     */
    public Builder codec(PayloadCodec codec) {
      this.codec = Objects.requireNonNull(codec, "codec");
      return this;
    }

    /**
     * Sets the queue of the wakes.
     *
     * @param queue the queue; default {@code monitors.<application>}. All nodes and all controls
     *     need the same
     * @return this builder
     * @throws IllegalArgumentException if no queue can have the name
     */
    public Builder queue(String queue) {
      this.queue = requireQueue(queue);
      return this;
    }

    /**
     * Sets what wakes this node: for starts, events, and whatever else makes a check due.
     *
     * @param source the source
     * @return this builder
     */
    public Builder listen(NotificationSource source) {
      inner.listen(source);
      return this;
    }

    /**
     * Sets where wakes go whose checks end their processes each time. Their instances have failed.
     *
     * @param deadLetters the dead letters; default {@code <outbox>_dlq} beside the outbox
     * @return this builder
     */
    public Builder deadLetters(DeadLetterQueue deadLetters) {
      inner.deadLetters(deadLetters);
      return this;
    }

    /**
     * Replaces the text that is kept of what a check throws, with the instance and with a dead
     * letter.
     *
     * @param renderer the renderer; default {@link ExceptionRenderer#stackTrace()}, of which the
     *     class, the message and the head of the stack trace are kept. Of another one its text is
     * @return this builder
     */
    public Builder renderExceptions(ExceptionRenderer renderer) {
      this.renderer = Objects.requireNonNull(renderer, "renderer");
      return this;
    }

    /**
     * Changes settings of the subscriber that runs the checks, such as its workers, its lease or
     * how long a check may take. What is said here of its store, its dead letters, its ack mode,
     * the retries of types, the rate limit of the queue, and messages of unknown types is
     * overwritten.
     *
     * <p>An instance whose node was killed while it had its message waits for the end of the lease,
     * 60 s if nothing else is said, or for its expiry. It is renewed while a check runs.
     *
     * <p>A check that ends its process each time is given up after as many deliveries as {@code
     * maxDeliveries} says, each of which lasts a lease.
     *
     * @param change told when this is built
     * @return this builder
     */
    public Builder subscriber(Consumer<OutboxSubscriber.Builder> change) {
      inner.change(change);
      return this;
    }

    /**
     * Adds who observes the monitors, such as {@code MicrometerMonitorMetrics}.
     *
     * @param observer told of looks and checks
     * @return this builder
     */
    public Builder events(MonitorEvents observer) {
      events.add(Objects.requireNonNull(observer, "observer"));
      return this;
    }

    /**
     * Builds what is not started yet.
     *
     * @return the monitors
     * @throws IllegalStateException if there is no type, a type needs a codec and there is none, or
     *     the subscriber's settings contradict each other
     */
    public Monitors build() {
      if (types.isEmpty()) {
        throw new IllegalStateException("there is no monitor type; add one by on(...)");
      }
      types.values().stream()
          .filter(definition -> codec == null && definition.needsCodec())
          .findFirst()
          .ifPresent(
              definition -> {
                throw new IllegalStateException(
                    definition.type()
                        + " has an input that a codec reads; set one with codec(...)");
              });
      Observer observer = new Observer(events);
      NodeState state = new NodeState(application, InstantSource.system());
      PostgresOutbox.PublisherBuilder publisher = PostgresOutbox.publisher(outbox.table());
      if (codec != null) {
        publisher.codec(codec);
      }
      RunningChecks running = new RunningChecks();
      CheckHandlers handlers =
          new CheckHandlers(
              outbox, application, publisher.build(), observer, state, running, renderer);
      OutboxSubscriber.Builder builder = OutboxSubscriber.builder(queue);
      builder.renderExceptions(renderer);
      inner.applyTo(builder);
      builder.store(handlers.store()).deadLetters(inner.deadLetters()).ackMode(AckMode.AUTO);
      Values values = new Values(codec);
      types
          .values()
          .forEach(
              definition -> handlers.add(builder, definition.with(values, application, observer)));
      handlers.addOtherwise(builder, queue);
      InstanceStore store = new InstanceStore(outbox, application, queue);
      return new Monitors(
          builder.build(),
          new LookLoop(store, application, queue, state, observer),
          new ExpiryLoop(outbox, application, queue, running, observer),
          state,
          application,
          observer);
    }
  }
}
