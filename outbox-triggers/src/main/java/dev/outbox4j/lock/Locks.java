package dev.outbox4j.lock;

import dev.outbox4j.internal.EngineThreads;
import dev.outbox4j.internal.schema.Names;
import dev.outbox4j.postgres.PostgresOutbox;
import dev.outbox4j.spi.NotificationSource;
import dev.outbox4j.spi.NotificationSource.Subscription;
import dev.outbox4j.triggers.internal.Applications;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Objects;
import java.util.Set;
import java.util.UUID;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The locks of an application, in this process. Any number of processes may take the same ones; the
 * server's clock alone decides whether a lease is over. Thread-safe.
 */
public final class Locks implements AutoCloseable {
  static final Logger log = LoggerFactory.getLogger(Locks.class);

  private enum State {
    NEW,
    STARTED,
    STOPPED
  }

  private final PostgresOutbox outbox;
  private final String application;
  private final @Nullable NotificationSource source;
  private final LeaseTime time;
  private final List<LockEvents> observers;
  private final Releases releases;
  private final Set<Lease> held = ConcurrentHashMap.newKeySet();
  private final Set<SingletonListener> listeners = ConcurrentHashMap.newKeySet();
  private final String process = UUID.randomUUID().toString().substring(0, 8);
  private volatile State state = State.NEW;
  private @Nullable Subscription subscription; // guarded by this

  Locks(
      PostgresOutbox outbox,
      String application,
      @Nullable NotificationSource source,
      LeaseTime time,
      List<LockEvents> observers) {
    this.outbox = outbox;
    this.application = application;
    this.source = source;
    this.time = time;
    this.observers = List.copyOf(observers);
    this.releases = new Releases(application);
  }

  /**
   * Begins to set up the locks of an application.
   *
   * @param outbox where they are on record; {@code LockMigrations} sets it up
   * @param application whose locks they are: those of two applications in one database have nothing
   *     to do with each other. By the rules for names of queues, at most 200 bytes in UTF-8
   * @return a builder; it does no I/O
   * @throws IllegalArgumentException if the name is not allowed
   */
  public static Builder builder(PostgresOutbox outbox, String application) {
    return new Builder(outbox, application);
  }

  /**
   * Starts: from here on locks can be acquired. Returns at once, and succeeds without a database.
   *
   * @throws IllegalStateException if it was started before
   */
  public synchronized void start() {
    if (state != State.NEW) {
      throw new IllegalStateException("these locks were started before; build others");
    }
    state = State.STARTED;
    if (source != null) {
      subscription = source.listen(Names.locksChannel(outbox.table().name()), releases);
    }
    tell(events -> events.started(application, this::health));
  }

  /**
   * Stops: listeners are stopped, and no lock is waited for any more; who waits is told by an
   * exception. Locks that are held are renewed until they are closed. Idempotent.
   */
  public void stop() {
    boolean stopping;
    synchronized (this) {
      stopping = state == State.STARTED;
      state = State.STOPPED; // first, so that what a listener's work waits for ends
    }
    releases.wakeAll();
    List.copyOf(listeners).forEach(SingletonListener::stop);
    synchronized (this) {
      if (subscription != null) {
        subscription.close();
        subscription = null;
      }
    }
    if (stopping) {
      tell(events -> events.stopped(application));
    }
  }

  /** Stops. */
  @Override
  public void close() {
    stop();
  }

  /**
   * Returns a lock, by which one at a time of all processes may do something.
   *
   * @param name its name: at most 200 bytes in UTF-8, without control characters, {@code /} and
   *     leading or trailing blanks
   * @return the lock, which nobody has acquired by that
   * @throws IllegalArgumentException if the name is not allowed
   */
  public SingletonLock lock(String name) {
    return SingletonLock.of(this, name);
  }

  /**
   * Returns a listener, which does something in one process at a time for as long as it is started.
   *
   * @param name the name of its lock, by the rules for names of locks
   * @param work what it does
   * @return the listener, which is not started
   * @throws IllegalArgumentException if the name is not allowed
   */
  public SingletonListener listener(String name, ListenerWork work) {
    return SingletonListener.of(this, name, work);
  }

  List<Lease> held() {
    return List.copyOf(held);
  }

  /** {@return what these locks know of themselves, from memory} */
  public LocksHealth health() {
    return new LocksHealth(
        application,
        state == State.STARTED,
        source != null,
        releases.connectedNow(),
        held.stream()
            .sorted(Comparator.comparing(Lease::name))
            .map(lease -> new LocksHealth.Held(lease.name(), lease.token(), lease.remaining()))
            .toList(),
        listeners.stream()
            .map(SingletonListener::health)
            .sorted(Comparator.comparing(LocksHealth.Listener::name))
            .toList(),
        releases.waiting());
  }

  LockStore store(Duration networkTimeout) {
    return new LockStore(outbox, application, networkTimeout);
  }

  LeaseTime time() {
    return time;
  }

  Releases releases() {
    return releases;
  }

  EngineThreads threads() {
    return threads(application);
  }

  private static EngineThreads threads(String application) {
    return new EngineThreads("locks." + application, Locks.class.getClassLoader());
  }

  /** Tells people who has a lock: which process, and what makes this acquisition unlike others. */
  String newOwner() {
    return application + "/" + process + "/" + UUID.randomUUID().toString().substring(0, 13);
  }

  void requireStarted() {
    if (state != State.STARTED) {
      throw new IllegalStateException(
          state == State.NEW
              ? "these locks are not started; call start() first"
              : "these locks were stopped; nothing is locked by them any more");
    }
  }

  /** Tells all who observe, whatever one of them throws. */
  private void tell(Consumer<LockEvents> event) {
    for (LockEvents each : observers) {
      try {
        event.accept(each);
      } catch (Throwable e) { // also of a class that is missing
        log.warn("locks of {}: {} failed", application, each, e);
      }
    }
  }

  void tellAcquired(String lock, Duration waited) {
    tell(events -> events.acquired(application, lock, waited));
  }

  void tellTimedOut(String lock) {
    tell(events -> events.timedOut(application, lock));
  }

  void tellLost(String lock, LostLock lost) {
    tell(events -> events.lost(application, lock, lost));
  }

  void add(Lease lease) {
    held.add(lease);
  }

  void remove(Lease lease) {
    held.remove(lease);
  }

  /** Either it is started, or these locks are stopped before. */
  synchronized void addStarted(SingletonListener listener) {
    requireStarted();
    listeners.add(listener);
  }

  boolean isStarted() {
    return state == State.STARTED;
  }

  boolean isStopped() {
    return state == State.STOPPED;
  }

  void remove(SingletonListener listener) {
    listeners.remove(listener);
  }

  /** Collects settings. Not thread-safe; does no I/O. */
  public static final class Builder {
    private final PostgresOutbox outbox;
    private final String application;
    private @Nullable NotificationSource source;
    private @Nullable LeaseTime time;
    private final List<LockEvents> observers = new ArrayList<>();

    private Builder(PostgresOutbox outbox, String application) {
      this.outbox = Objects.requireNonNull(outbox, "outbox");
      this.application = Applications.require(application);
    }

    /**
     * Sets what tells of releases. Without it a release is noticed by polling.
     *
     * @param source the source
     * @return this builder
     */
    public Builder listen(NotificationSource source) {
      this.source = Objects.requireNonNull(source, "source");
      return this;
    }

    /**
     * Adds who observes the locks, such as {@code MicrometerLockMetrics}.
     *
     * @param observer told of acquisitions and losses
     * @return this builder
     */
    public Builder events(LockEvents observer) {
      observers.add(Objects.requireNonNull(observer, "observer"));
      return this;
    }

    /** Sets the clock of leases, for tests. */
    Builder time(LeaseTime time) {
      this.time = time;
      return this;
    }

    /** {@return the locks, which are not started} */
    public Locks build() {
      LeaseTime leases = time == null ? new LeaseThreads(threads(application)) : time;
      return new Locks(outbox, application, source, leases, observers);
    }
  }
}
