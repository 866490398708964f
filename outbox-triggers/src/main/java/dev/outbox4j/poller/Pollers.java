package dev.outbox4j.poller;

import dev.outbox4j.OutboxMessage;
import dev.outbox4j.internal.EngineThreads;
import dev.outbox4j.internal.Warnings;
import dev.outbox4j.poller.internal.Checks;
import dev.outbox4j.poller.internal.HandlerCall;
import dev.outbox4j.poller.internal.NodeNames;
import dev.outbox4j.poller.internal.Observer;
import dev.outbox4j.poller.internal.PollerNode;
import dev.outbox4j.poller.internal.PollerNodes;
import dev.outbox4j.poller.internal.Publishing;
import dev.outbox4j.postgres.OutboxPublisher;
import dev.outbox4j.postgres.PostgresOutbox;
import dev.outbox4j.triggers.internal.Applications;
import java.sql.Connection;
import java.time.Duration;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.Function;
import javax.sql.DataSource;
import org.jspecify.annotations.Nullable;

/**
 * The pollers of an application, on this node. Any number of nodes may have the same ones: each
 * poller is run by one node at a time, which has its lease, and the others stand by. There is no
 * leader.
 *
 * <p>A poller's position, lease and history are in the outbox's database. Its source may be there
 * or in any other PostgreSQL database. Each poller has a thread of its own, on which its handler is
 * called; no connection is held while that runs, but for a transactional one. Thread-safe.
 */
public final class Pollers implements AutoCloseable {
  private enum State {
    NEW,
    STARTED,
    STOPPED
  }

  private final PollerNodes nodes;
  private final String application;
  private final Observer observer;
  private final Duration gracefulTimeout;
  private final AtomicReference<State> state = new AtomicReference<>(State.NEW);

  private Pollers(
      PollerNodes nodes, String application, Observer observer, Duration gracefulTimeout) {
    this.nodes = nodes;
    this.application = application;
    this.observer = observer;
    this.gracefulTimeout = gracefulTimeout;
  }

  /**
   * Begins to define the pollers of an application.
   *
   * @param outbox where they are on record; {@code PollerMigrations} sets it up
   * @param application whose pollers they are: those of two applications in one database have
   *     nothing to do with each other. By the rules for names of queues, at most 200 bytes in UTF-8
   * @return a builder; it does no I/O
   * @throws IllegalArgumentException if the name is not allowed
   */
  public static Builder builder(PostgresOutbox outbox, String application) {
    return new Builder(outbox, application);
  }

  /**
   * Starts: puts the pollers on record, and begins to look. Returns at once; while a database
   * cannot be reached it is tried again.
   *
   * @throws IllegalStateException if they were started before
   */
  public void start() {
    if (!state.compareAndSet(State.NEW, State.STARTED)) {
      throw new IllegalStateException("these pollers were started or stopped before; build others");
    }
    observer.tell(events -> events.started(application, this::health));
    nodes.start();
  }

  /**
   * Stops: no batch begins any more, and those that are being handled are waited for, up to the
   * {@linkplain Builder#gracefulTimeout graceful timeout}; then their threads are interrupted.
   * Leases are released. Idempotent.
   */
  public void stop() {
    State before = state.getAndSet(State.STOPPED);
    if (before == State.STOPPED) {
      return;
    }
    nodes.stop(gracefulTimeout, before == State.STARTED);
    if (before == State.STARTED) {
      observer.tell(events -> events.stopped(application));
    }
  }

  /** Stops. */
  @Override
  public void close() {
    stop();
  }

  /**
   * Ticks a poller once, on the caller's thread: takes its lease, handles all batches until one is
   * not full, and releases the lease. Puts the poller on record if it is not. For tests, for jobs,
   * and for a smoke test before the pollers are started.
   *
   * @param poller its name
   * @return what became of it; a failure is told there and not thrown
   * @throws IllegalArgumentException if there is no such poller here
   * @throws IllegalStateException if the pollers are started, or were stopped
   */
  public TickResult tick(String poller) {
    PollerNode node = nodes.named(poller);
    if (state.get() != State.NEW) {
      throw new IllegalStateException(
          "these pollers were started or stopped; build others to tick by hand");
    }
    synchronized (node) { // a poller is confined to one thread at a time
      return node.tick();
    }
  }

  /**
   * Reads what the first batch of a tick would be, and neither handles it nor writes anything: no
   * lease is taken, and the poller is not put on record. It waits for up to a second for rows that
   * are complete soon, as a tick does.
   *
   * @param poller its name
   * @return the rows, or why they could not be read
   * @throws IllegalArgumentException if there is no such poller here
   * @throws IllegalStateException if the pollers are started, or were stopped
   */
  public TickResult dryTick(String poller) {
    PollerNode node = nodes.named(poller);
    if (state.get() != State.NEW) {
      throw new IllegalStateException(
          "these pollers were started or stopped; build others to tick by hand");
    }
    synchronized (node) {
      return node.dryTick();
    }
  }

  /** {@return what they know of themselves on this node, from memory} */
  public PollersHealth health() {
    return new PollersHealth(application, state.get() == State.STARTED, nodes.health());
  }

  /** Collects definitions and settings. Not thread-safe; does no I/O. */
  public static final class Builder {
    private static final Duration LONGEST_GRACE = Duration.ofDays(1);
    private static final int MAX_NODE_BYTES = 200;

    private final PostgresOutbox outbox;
    private final String application;
    private final Map<String, PollerNodes.Entry> entries = new LinkedHashMap<>();
    private final List<PollerEvents> observers = new ArrayList<>();
    private DataSource source;
    private @Nullable OutboxPublisher publisher;
    private Duration gracefulTimeout = Duration.ofSeconds(30);
    private Duration patience = PollerNode.PATIENCE;
    private String node;

    private Builder(PostgresOutbox outbox, String application) {
      this.outbox = Objects.requireNonNull(outbox, "outbox");
      this.application = Applications.require(application);
      this.source = outbox.dataSource();
      this.node = NodeNames.ofThisProcess();
    }

    /**
     * Sets where the sources of the pollers are that are added after this.
     *
     * @param source a pool; stays the caller's. Default is the outbox's own
     * @return this builder
     */
    public Builder source(DataSource source) {
      this.source = Objects.requireNonNull(source, "source");
      return this;
    }

    /**
     * Adds a poller.
     *
     * @param poller its definition
     * @param handler what it is for
     * @return this builder
     * @throws IllegalArgumentException if there is one of its name
     */
    public Builder on(Poller poller, PollerHandler handler) {
      return add(poller, new HandlerCall.Plain(handler));
    }

    /**
     * Adds a poller whose handler writes to the outbox's database, in the transaction that moves
     * the position: each row counts once there. The source may be in another database.
     *
     * @param poller its definition
     * @param handler what it is for
     * @return this builder
     * @throws IllegalArgumentException if there is one of its name
     */
    public Builder transactional(Poller poller, TransactionalPollerHandler<Connection> handler) {
      return add(poller, new HandlerCall.Transactional(handler));
    }

    private Builder add(Poller poller, HandlerCall handler) {
      PollerNodes.Entry entry = new PollerNodes.Entry(poller, source, handler);
      if (entries.putIfAbsent(poller.name(), entry) != null) {
        throw new IllegalArgumentException(
            "there are two pollers of the name '%s'; name each by what it does"
                .formatted(poller.name()));
      }
      return this;
    }

    /**
     * Adds a poller that publishes a message for each row, in the transaction that moves the
     * position: each row is published once. The type is {@code upsert} or {@code delete}, the
     * ordering key the row's key, and the body a JSON object with {@code eventId}, {@code
     * operation}, {@code source}, {@code cursor}, {@code key} and {@code after}.
     *
     * @param poller its definition
     * @param queue the queue of the messages
     * @return this builder
     * @throws IllegalArgumentException if there is a poller of its name, or no queue can have the
     *     name
     */
    public Builder publishTo(Poller poller, String queue) {
      OutboxMessage.to(queue); // the rules for names
      return publish(poller, row -> Optional.of(Publishing.message(queue, row)));
    }

    /**
     * Adds a poller that publishes the messages that a mapping makes of its rows, in the
     * transaction that moves the position.
     *
     * @param poller its definition
     * @param mapping makes a message of a row; empty if there is to be none. What it throws fails
     *     the batch
     * @return this builder
     * @throws IllegalArgumentException if there is a poller of its name
     */
    public Builder publish(Poller poller, Function<RowChange, Optional<OutboxMessage>> mapping) {
      Objects.requireNonNull(mapping, "mapping");
      // the publisher may be set after this
      return transactional(
          poller,
          (rows, context, connection) -> Publishing.publish(known(), mapping, rows, connection));
    }

    private OutboxPublisher known() {
      return Objects.requireNonNull(publisher, "set by build()");
    }

    /**
     * Sets what publishes the messages of {@link #publishTo} and {@link #publish}, such as one with
     * a codec of its own.
     *
     * @param publisher of the outbox; default is one with the default settings
     * @return this builder
     */
    public Builder publisher(OutboxPublisher publisher) {
      this.publisher = Objects.requireNonNull(publisher, "publisher");
      return this;
    }

    /**
     * Sets how long handlers are waited for when the pollers stop.
     *
     * @param timeout from zero to 1 day; default 30 s
     * @return this builder
     * @throws IllegalArgumentException if it is out of range
     */
    public Builder gracefulTimeout(Duration timeout) {
      gracefulTimeout = Checks.within("gracefulTimeout", timeout, Duration.ZERO, LONGEST_GRACE);
      return this;
    }

    /** Sets for how long a position is tried to be written, if not for the lease; for tests. */
    Builder patience(Duration patience) {
      this.patience = patience;
      return this;
    }

    /**
     * Names this node, as records and other nodes' logs show it.
     *
     * @param node not blank, at most 200 bytes in UTF-8; default is the host's name, the process's
     *     id. A random text is added in any case
     * @return this builder
     * @throws IllegalArgumentException if it is anything else
     */
    public Builder node(String node) {
      this.node = Checks.name("node", node, MAX_NODE_BYTES);
      return this;
    }

    /**
     * Adds who observes the pollers, such as {@code MicrometerPollerMetrics}.
     *
     * @param observer told of ticks and batches
     * @return this builder
     */
    public Builder events(PollerEvents observer) {
      observers.add(Objects.requireNonNull(observer, "observer"));
      return this;
    }

    /**
     * Builds what is not started yet.
     *
     * @return the pollers
     * @throws IllegalStateException if there is no poller
     */
    public Pollers build() {
      if (entries.isEmpty()) {
        throw new IllegalStateException(
            "there is no poller; add one by on(...), transactional(...) or publishTo(...)");
      }
      if (publisher == null) {
        publisher = PostgresOutbox.publisher(outbox.table()).build();
      }
      Observer observer = new Observer(observers);
      PollerNode.Shared shared =
          new PollerNode.Shared(
              outbox,
              application,
              NodeNames.distinct(node),
              new EngineThreads("pollers." + application, Pollers.class.getClassLoader()),
              new Warnings("pollers." + application),
              observer,
              patience);
      return new Pollers(
          new PollerNodes(shared, List.copyOf(entries.values())),
          application,
          observer,
          gracefulTimeout);
    }
  }
}
