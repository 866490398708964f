package dev.outbox4j.lock;

import dev.outbox4j.Delivery;
import dev.outbox4j.OutboxStoreException;
import dev.outbox4j.Outcome;
import dev.outbox4j.TransactionalHandler;
import dev.outbox4j.TypedHandler;
import dev.outbox4j.internal.Durations;
import dev.outbox4j.internal.OneLine;
import dev.outbox4j.lock.LockStore.Attempt;
import dev.outbox4j.lock.Releases.Waiter;
import dev.outbox4j.postgres.PostgresOutbox;
import dev.outbox4j.timer.TimerHandler;
import dev.outbox4j.timer.TimerRun;
import dev.outbox4j.timer.TransactionalTimerHandler;
import java.nio.charset.StandardCharsets;
import java.sql.Connection;
import java.time.Duration;
import java.util.Objects;
import java.util.Optional;
import java.util.function.BiFunction;
import java.util.function.BooleanSupplier;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/**
 * A lock that one holder at a time has, over all processes. While it is held it is renewed at half
 * of its period; who holds it and dies is replaced when the period is over. Immutable and
 * thread-safe: each method that sets something returns another one.
 *
 * <p>A lock is not reentrant: who holds it and acquires it again waits for itself.
 *
 * <p>Defaults and ranges are those of <a
 * href="https://github.com/Azure/azure-webjobs-sdk/blob/dev/src/Microsoft.Azure.WebJobs.Host/Singleton/SingletonConfiguration.cs">SingletonOptions</a>
 * of the WebJobs SDK.
 */
public final class SingletonLock {
  static final Duration SHORTEST_PERIOD = Duration.ofSeconds(15);
  static final Duration LONGEST_PERIOD = Duration.ofSeconds(60);
  private static final Duration SHORTEST_POLLING = Duration.ofMillis(500);
  private static final Duration AFTER_A_FAILURE = Duration.ofSeconds(1);
  private static final Duration LOOK_FOR_CANCEL = Duration.ofMillis(500);
  private static final int MAX_NAME_BYTES = 200;
  private static final int MAX_SUFFIX_BYTES = 500;

  /** How long a statement may take is part of the period, so that another one may follow. */
  private static final int TIMEOUTS_IN_A_PERIOD = 4;

  private final Locks locks;
  private final String name;
  private final Duration period;
  private final @Nullable Duration timeout;
  private final @Nullable Duration polling;
  private final Consumer<LostLock> onLost;
  private final LockStore store;

  private SingletonLock(
      Locks locks,
      String name,
      Duration period,
      @Nullable Duration timeout,
      @Nullable Duration polling,
      Consumer<LostLock> onLost,
      LockStore store) {
    this.locks = locks;
    this.name = name;
    this.period = period;
    this.timeout = timeout;
    this.polling = polling;
    this.onLost = onLost;
    this.store = store;
  }

  private static LockStore store(Locks locks, Duration period) {
    Duration share = period.dividedBy(TIMEOUTS_IN_A_PERIOD);
    return locks.store(
        share.compareTo(PostgresOutbox.DEFAULT_NETWORK_TIMEOUT) < 0
            ? share
            : PostgresOutbox.DEFAULT_NETWORK_TIMEOUT);
  }

  static SingletonLock of(Locks locks, String name) {
    requireText("lock name", name, MAX_NAME_BYTES);
    if (name.indexOf('/') >= 0) {
      throw new IllegalArgumentException(
          "lock name '%s' has a '/', which is before suffixes; use suffix(...)".formatted(name));
    }
    return new SingletonLock(
        locks,
        name,
        SHORTEST_PERIOD,
        null,
        Duration.ofSeconds(5),
        lost -> {},
        store(locks, SHORTEST_PERIOD));
  }

  private static void requireText(String what, String text, int most) {
    if (text.isBlank() || !text.strip().equals(text)) {
      throw new IllegalArgumentException(
          "%s '%s' is blank, or has blanks at an end; name what is locked".formatted(what, text));
    }
    if (text.chars().anyMatch(Character::isISOControl)) {
      throw new IllegalArgumentException(
          "%s '%s' has control characters; name what is locked".formatted(what, OneLine.of(text)));
    }
    int bytes = text.getBytes(StandardCharsets.UTF_8).length;
    if (bytes > most) {
      throw new IllegalArgumentException(
          "%s '%s' has %d bytes; it may have %d, so shorten it".formatted(what, text, bytes, most));
    }
  }

  /**
   * Returns a lock for a part of what this one is for, such as one customer. It has nothing to do
   * with this one, nor with those of other parts.
   *
   * @param suffix what it is for: at most 500 bytes in UTF-8, without control characters and
   *     leading or trailing blanks
   * @return the lock, with the same settings
   * @throws IllegalArgumentException if the suffix is not allowed
   * @throws IllegalStateException if this lock has a suffix already
   */
  public SingletonLock suffix(String suffix) {
    requireNoSuffix();
    requireText("suffix", suffix, MAX_SUFFIX_BYTES);
    return new SingletonLock(locks, name + "/" + suffix, period, timeout, polling, onLost, store);
  }

  /** The names of two suffixes could be that of another one. */
  private void requireNoSuffix() {
    if (name.indexOf('/') >= 0) {
      throw new IllegalStateException(
          "lock '%s' has a suffix already; put all it is for into one suffix".formatted(name));
    }
  }

  /**
   * Sets for how long the lock is held unless it is renewed. It is what passes before a holder that
   * has died is replaced.
   *
   * @param period from 15 s to 60 s; default 15 s
   * @return a lock that differs in this
   * @throws IllegalArgumentException if it is out of range
   */
  public SingletonLock period(Duration period) {
    requirePeriod(period);
    return new SingletonLock(locks, name, period, timeout, polling, onLost, store(locks, period));
  }

  static void requirePeriod(Duration period) {
    if (period.compareTo(SHORTEST_PERIOD) < 0 || period.compareTo(LONGEST_PERIOD) > 0) {
      throw new IllegalArgumentException(
          "period is " + period + "; it must be from " + SHORTEST_PERIOD + " to " + LONGEST_PERIOD);
    }
  }

  /**
   * Sets for how long the lock is waited for. The wait for a connection is bounded by its pool.
   *
   * @param timeout more than zero; by default it is waited for without end
   * @return a lock that differs in this
   * @throws IllegalArgumentException if it is zero or less
   */
  public SingletonLock acquisitionTimeout(Duration timeout) {
    if (timeout.isZero() || timeout.isNegative()) {
      throw new IllegalArgumentException(
          "acquisitionTimeout is " + timeout + "; it must be more than zero; see tryAcquire()");
    }
    return new SingletonLock(locks, name, period, timeout, polling, onLost, store);
  }

  /**
   * Sets how often it is tried to acquire the lock, beside at each release that is heard of and at
   * the end of the holder's lease.
   *
   * @param polling at least 500 ms; default 5 s
   * @return a lock that differs in this
   * @throws IllegalArgumentException if it is shorter
   */
  public SingletonLock acquisitionPolling(Duration polling) {
    if (polling.compareTo(SHORTEST_POLLING) < 0) {
      throw new IllegalArgumentException(
          "acquisitionPolling is " + polling + "; it must be at least " + SHORTEST_POLLING);
    }
    return new SingletonLock(locks, name, period, timeout, polling, onLost, store);
  }

  /** Sets how often a listener looks; null for never. */
  SingletonLock polling(@Nullable Duration polling) {
    return new SingletonLock(locks, name, period, timeout, polling, onLost, store);
  }

  /** {@return how often it is looked at beside at releases and ends of leases; null for never} */
  @Nullable Duration polling() {
    return polling;
  }

  /** {@return for how long it is waited for; null for without end} */
  @Nullable Duration timeout() {
    return timeout;
  }

  /**
   * Sets what is told when a lock was lost that is held by this one.
   *
   * @param onLost told once of each loss, on a thread of its own, before the lease is over on the
   *     server, or when a statement finds that it is another's; what it throws is logged
   * @return a lock that differs in this
   */
  public SingletonLock onLost(Consumer<LostLock> onLost) {
    Objects.requireNonNull(onLost, "onLost");
    return new SingletonLock(locks, name, period, timeout, polling, onLost, store);
  }

  /** {@return its name, with its suffix} */
  public String name() {
    return name;
  }

  /** {@return for how long it is held unless it is renewed} */
  public Duration period() {
    return period;
  }

  /**
   * Acquires the lock; waits until it can. While the database cannot be reached it is tried again.
   *
   * @return the lock, which is to be closed
   * @throws LockTimeoutException if it took longer than the acquisition timeout
   * @throws OutboxStoreException if the table or a grant is missing
   * @throws InterruptedException if the thread was interrupted
   * @throws IllegalStateException if the {@link Locks} are not started, or are stopped meanwhile
   */
  public HeldLock acquire() throws InterruptedException {
    return acquireLease();
  }

  Lease acquireLease() throws InterruptedException {
    return Objects.requireNonNull(acquireLease(() -> false), "not cancelled");
  }

  /** Returns null if it is not wanted any more before it could be acquired. */
  @Nullable Lease acquireLease(BooleanSupplier cancelled) throws InterruptedException {
    try (Waiter waiter = locks.releases().waiter(name)) {
      return new Acquisition(waiter, cancelled).await();
    }
  }

  /**
   * Acquires the lock if nobody has it; does not wait.
   *
   * @return the lock, which is to be closed; empty if another has it
   * @throws OutboxStoreException if the statement fails
   * @throws IllegalStateException if the {@link Locks} are not started, or are stopped
   */
  public Optional<HeldLock> tryAcquire() {
    String owner = locks.newOwner();
    try {
      Tried tried = attempt(owner);
      if (tried.isTooLate()) {
        forget(owner);
      }
      if (tried.lease() != null) {
        locks.tellAcquired(baseName(), Duration.ZERO);
      }
      return Optional.ofNullable(tried.lease());
    } catch (OutboxStoreException e) {
      if (e.outcomeUnknown()) {
        forget(owner);
      }
      throw e;
    }
  }

  /**
   * Does something while the lock is held; waits for it. The thread is interrupted when the lock is
   * lost.
   *
   * @param work what
   * @param <T> what it returns
   * @return what it returned
   * @throws LockLostException if the lock was lost before the work was done; its cause is what the
   *     work threw then, if anything
   * @throws Exception what the work threw, or {@link #acquire()}
   */
  public <T> T call(LockedCall<T> work) throws Exception {
    return call(acquireLease(), work);
  }

  private static <T> T call(Lease lease, LockedCall<T> work) throws Exception {
    T result;
    try (lease) {
      lease.work(Thread.currentThread());
      try {
        result = work.call(lease);
      } finally {
        lease.endWork();
      }
    } catch (Exception e) {
      throw lease.isLost() && !(e instanceof LockLostException) ? lease.lost(e) : e;
    }
    if (lease.isLost()) {
      throw lease.lost(null);
    }
    return result;
  }

  /**
   * Does something while the lock is held, as {@link #call} does.
   *
   * @param work what
   * @throws LockLostException if the lock was lost before the work was done
   * @throws Exception what the work threw, or {@link #acquire()}
   */
  public void run(LockedRun work) throws Exception {
    call(
        lock -> {
          work.run(lock);
          return true;
        });
  }

  /**
   * Puts a handler under this lock: over all processes one message at a time is handled by those
   * that are put under it. A handler that waits for the lock keeps its worker and its message's
   * lease; set an {@linkplain #acquisitionTimeout acquisition timeout} below the handler's timeout,
   * and the message comes again a little later, which counts no attempt.
   *
   * @param handler the handler
   * @param <T> what the payload is decoded to
   * @return the handler under the lock, for a subscriber's {@code on(...)}
   */
  public <T> TypedHandler<T> around(LockedHandler<T> handler) {
    Objects.requireNonNull(handler, "handler");
    return (body, delivery) ->
        handle(delivery, isCancelled(delivery), lease -> handler.handle(body, delivery, lease));
  }

  /**
   * Puts a handler under a lock with a suffix of the message: of each suffix, one message at a time
   * is handled.
   *
   * @param suffix takes the suffix from the message, by the rules of {@link #suffix}
   * @param handler the handler
   * @param <T> what the payload is decoded to
   * @return the handler under the lock, for a subscriber's {@code on(...)}
   */
  public <T> TypedHandler<T> around(
      BiFunction<T, Delivery, String> suffix, LockedHandler<T> handler) {
    requireNoSuffix();
    Objects.requireNonNull(suffix, "suffix");
    Objects.requireNonNull(handler, "handler");
    return (body, delivery) ->
        suffix(suffix.apply(body, delivery))
            .handle(
                delivery, isCancelled(delivery), lease -> handler.handle(body, delivery, lease));
  }

  /**
   * Puts a timer's handler under this lock: over all processes one run at a time is handled by
   * those that are put under it, of whichever timers. A handler that waits for the lock keeps its
   * worker, and its run has begun; set an {@linkplain #acquisitionTimeout acquisition timeout}
   * below the handler's timeout, and the run comes again a little later. That is no failure, though
   * {@code TimerRun.attempt()} is one more then.
   *
   * @param handler the handler
   * @return the handler under the lock, for {@code Timers.builder(...).on(...)}
   */
  public TimerHandler around(LockedTimerHandler handler) {
    Objects.requireNonNull(handler, "handler");
    return run -> handle(run.delivery(), isCancelled(run), lease -> handler.handle(run, lease));
  }

  /**
   * Puts a handler under this lock that runs in the transaction of its message's ack. The
   * transaction is {@linkplain HeldLock#guard guarded}, and the lock is released with its commit:
   * whoever acquires it next sees what was written. If the transaction is rolled back though the
   * handler has returned, the lock is released a second later.
   *
   * <p>The lock is acquired in the transaction, so a handler that waits keeps its connection, and
   * another one of the pool is needed to acquire with. Set an {@linkplain #acquisitionTimeout
   * acquisition timeout}: the message then comes again a little later, which counts no attempt. By
   * the rules of {@link HeldLock#guard} the transaction is to be READ COMMITTED, and the server
   * ends it if it is idle between two statements for longer than was left of the period.
   *
   * @param handler the handler
   * @param <T> what the payload is decoded to
   * @return the handler under the lock, for {@code PostgresOutbox.transactional(...)}
   */
  public <T> TransactionalHandler<T, Connection> guarding(
      TransactionalHandler<T, Connection> handler) {
    Objects.requireNonNull(handler, "handler");
    return (body, delivery, connection) ->
        handleGuarded(
            delivery,
            isCancelled(delivery),
            connection,
            lease -> handler.handle(body, delivery, connection));
  }

  /**
   * Puts a handler that runs in the transaction of its message's ack under a lock with a suffix of
   * the message, as {@link #guarding(TransactionalHandler)} does under one without.
   *
   * @param suffix takes the suffix from the message, by the rules of {@link #suffix}
   * @param handler the handler
   * @param <T> what the payload is decoded to
   * @return the handler under the lock, for {@code PostgresOutbox.transactional(...)}
   */
  public <T> TransactionalHandler<T, Connection> guarding(
      BiFunction<T, Delivery, String> suffix, TransactionalHandler<T, Connection> handler) {
    requireNoSuffix();
    Objects.requireNonNull(suffix, "suffix");
    Objects.requireNonNull(handler, "handler");
    return (body, delivery, connection) ->
        suffix(suffix.apply(body, delivery))
            .handleGuarded(
                delivery,
                isCancelled(delivery),
                connection,
                lease -> handler.handle(body, delivery, connection));
  }

  /**
   * Puts a timer's handler that runs in the transaction of its run's end under this lock, as {@link
   * #guarding(TransactionalHandler)} does a message's.
   *
   * @param handler the handler
   * @return the handler under the lock, for {@code Timers.builder(...).on(...)}
   */
  public TransactionalTimerHandler<Connection> guarding(
      TransactionalTimerHandler<Connection> handler) {
    Objects.requireNonNull(handler, "handler");
    return (run, connection) ->
        handleGuarded(
            run.delivery(), isCancelled(run), connection, lease -> handler.handle(run, connection));
  }

  /** What is done with a lease. */
  private interface Work {
    void with(Lease lease) throws Exception;
  }

  private static BooleanSupplier isCancelled(Delivery delivery) {
    return () -> delivery.leaseLost() || delivery.stopping();
  }

  /**
   * A run that was only asked to stop goes on to wait: its handler is told when it has the lock.
   */
  private static BooleanSupplier isCancelled(TimerRun run) {
    return () -> run.isFenced() || run.delivery().stopping();
  }

  private void handleGuarded(
      Delivery delivery, BooleanSupplier cancelled, Connection transaction, Work work)
      throws Exception {
    handle(
        delivery,
        cancelled,
        lease -> {
          lease.guard(transaction);
          work.with(lease);
          lease.releaseWith(transaction);
        });
  }

  /** Where the handler is not called, no attempt has failed. */
  private void handle(Delivery delivery, BooleanSupplier cancelled, Work work) throws Exception {
    Lease lease;
    try {
      lease = acquireLease(cancelled);
    } catch (LockTimeoutException e) {
      Locks.log.info("{}; its message comes again", e.getMessage());
      delivery.decide(Outcome.reschedule(AFTER_A_FAILURE));
      return;
    } catch (IllegalStateException e) {
      if (locks.isStarted()) {
        throw e;
      }
      Locks.log.warn("lock {}: a message comes again, since {}", name, e.getMessage());
      delivery.decide(Outcome.reschedule(AFTER_A_FAILURE));
      return;
    }
    if (lease == null || cancelled.getAsBoolean()) {
      if (lease != null) {
        lease.close();
      }
      // also where its lease is lost: an ack might still find the message as it was
      delivery.decide(Outcome.reschedule(AFTER_A_FAILURE));
      return;
    }
    call(
        lease,
        held -> {
          work.with(lease);
          return true;
        });
  }

  /** Gives back what may be on record as this owner's. */
  private void forget(String owner) {
    locks.time().run(() -> store.forget(name, owner));
  }

  /** Of all suffixes, so that what is taken from messages floods nobody. */
  private String baseName() {
    int suffix = name.indexOf('/');
    return suffix < 0 ? name : name.substring(0, suffix);
  }

  /** One try; its lease is null if another has the lock, or the answer came too late. */
  private record Tried(@Nullable Lease lease, Attempt attempt) {
    boolean isTooLate() {
      return lease == null && attempt.token() != null;
    }
  }

  private Tried attempt(String owner) {
    locks.requireStarted();
    Attempt attempt = store.acquire(name, owner, period, locks.time()::nanos);
    Long token = attempt.token();
    if (token == null) {
      return new Tried(null, attempt);
    }
    Consumer<LostLock> lost =
        loss -> {
          locks.tellLost(baseName(), loss);
          onLost.accept(loss);
        };
    Lease lease =
        new Lease(
            store, locks.time(), name, owner, token, period, attempt.sent(), lost, locks::remove);
    if (!lease.begin()) {
      return new Tried(null, attempt);
    }
    locks.add(lease);
    if (!lease.isHeld()) {
      locks.remove(lease); // it ended before it was added
    }
    return new Tried(lease, attempt);
  }

  /** Tries until the lock is acquired. */
  private final class Acquisition {
    private final Waiter waiter;
    private final BooleanSupplier cancelled;
    private final String owner = locks.newOwner();
    private final long begun = locks.time().nanos();
    private boolean perhapsTaken;
    private boolean failed;
    private @Nullable String holder;

    Acquisition(Waiter waiter, BooleanSupplier cancelled) {
      this.waiter = waiter;
      this.cancelled = cancelled;
    }

    /** Returns null if it was cancelled. */
    @Nullable Lease await() throws InterruptedException {
      Lease lease = null;
      try {
        while (lease == null) {
          if (cancelled.getAsBoolean()) {
            return null;
          }
          long wait = Durations.saturatedNanos(AFTER_A_FAILURE);
          try {
            Tried tried = attempt(owner);
            lease = tried.lease();
            holder = tried.attempt().holder();
            perhapsTaken |= tried.isTooLate();
            wait = untilNext(tried.attempt());
          } catch (OutboxStoreException e) {
            if (!e.isTransient()) {
              throw e;
            }
            perhapsTaken |= e.outcomeUnknown();
            told(e);
          }
          if (lease == null) {
            await(Math.min(wait, left()));
          }
        }
        locks.tellAcquired(baseName(), Duration.ofNanos(locks.time().nanos() - begun));
        return lease;
      } finally {
        if (lease == null && perhapsTaken) {
          forget(owner);
        }
      }
    }

    /** Ends soon after it is cancelled, too. */
    private void await(long nanos) throws InterruptedException {
      long left = nanos;
      while (left > 0 && !cancelled.getAsBoolean()) {
        long part = Math.min(left, LOOK_FOR_CANCEL.toNanos());
        left = waiter.await(part) ? 0 : left - part;
      }
    }

    /** Once of each wait: many may wait while the database is away. */
    private void told(OutboxStoreException failure) {
      if (failed) {
        Locks.log.debug("lock {}: it could not be asked for, trying again", name, failure);
      } else {
        Locks.log.warn("lock {}: it could not be asked for, trying again", name, failure);
      }
      failed = true;
    }

    private long untilNext(Attempt attempt) {
      // nobody has it, but its row is locked: somebody is writing it, or a guarded write is open
      boolean locked = attempt.holder() == null || attempt.remaining().isZero();
      long atItsEnd = (locked ? SHORTEST_POLLING : attempt.remaining()).toNanos();
      return polling == null ? atItsEnd : Math.min(Durations.saturatedNanos(polling), atItsEnd);
    }

    private long left() {
      if (timeout == null) {
        return Long.MAX_VALUE;
      }
      long left = begun + Durations.saturatedNanos(timeout) - locks.time().nanos();
      if (left <= 0) {
        locks.tellTimedOut(baseName());
        throw new LockTimeoutException(
            "lock '%s' was not acquired within %s%s"
                .formatted(name, timeout, holder == null ? "" : "; " + holder + " has it"));
      }
      return left;
    }
  }

  @Override
  public String toString() {
    return "SingletonLock[" + name + ", " + period + "]";
  }
}
