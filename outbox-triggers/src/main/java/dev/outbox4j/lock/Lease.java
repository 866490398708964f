package dev.outbox4j.lock;

import dev.outbox4j.lock.LeaseTime.Alarm;
import java.sql.Connection;
import java.sql.SQLException;
import java.time.Duration;
import java.util.OptionalLong;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/**
 * One acquisition of a lock, which is renewed at half of its period. After a renewal that failed it
 * waits for half as long as before, but not for less than a second.
 *
 * <p>Time counts from when a statement was sent, so that its lease is over here before it is over
 * on the server; the last sixtieth of the period is for the deadline's own delay.
 */
final class Lease implements HeldLock {
  private static final long SHORTEST_PAUSE = Duration.ofSeconds(1).toNanos();
  private static final int MARGIN = 60;

  /** For a transaction to end that has the release in it. */
  private static final long UNTIL_THE_COMMIT = Duration.ofSeconds(1).toNanos();

  private enum State {
    HELD,
    CLOSING,
    CLOSED,
    LOST
  }

  private final LockStore store;
  private final LeaseTime time;
  private final String name;
  private final String owner;
  private final long token;
  private final Duration period;
  private final Consumer<LostLock> onLost;
  private final Consumer<Lease> ended;

  // guarded by this
  private State state = State.HELD;
  private long renewedAt;
  private long pause;
  private @Nullable Alarm deadline;
  private @Nullable Alarm renewal;
  private @Nullable Thread worker;
  private boolean interrupted;

  Lease(
      LockStore store,
      LeaseTime time,
      String name,
      String owner,
      long token,
      Duration period,
      long acquiredAt,
      Consumer<LostLock> onLost,
      Consumer<Lease> ended) {
    this.store = store;
    this.time = time;
    this.name = name;
    this.owner = owner;
    this.token = token;
    this.period = period;
    this.renewedAt = acquiredAt;
    this.onLost = onLost;
    this.ended = ended;
  }

  /** Begins to renew, unless the answer took so long that it is over. */
  synchronized boolean begin() {
    if (deadlineAt() - time.nanos() <= 0) {
      state = State.CLOSED;
      return false;
    }
    arm();
    return true;
  }

  private void arm() {
    cancelAlarms();
    pause = period.toNanos() / 2;
    deadline = time.at(deadlineAt(), () -> lose(State.HELD));
    renewal = renewalAt(renewedAt + pause);
  }

  private Alarm renewalAt(long nanos) {
    return time.at(nanos, () -> time.run(this::renew));
  }

  private void cancelAlarms() {
    if (deadline != null) {
      deadline.cancel();
    }
    if (renewal != null) {
      renewal.cancel();
    }
  }

  private long deadlineAt() {
    return renewedAt + period.toNanos() - period.toNanos() / MARGIN;
  }

  private void renew() {
    long begun = time.nanos();
    OptionalLong renewed;
    try {
      renewed = store.renew(name, owner, period, time::nanos);
    } catch (Throwable e) { // after an Error, too, the next one may succeed
      failed(begun, e);
      return;
    }
    if (renewed.isPresent()) {
      renewed(renewed.getAsLong());
    } else {
      lose(State.HELD); // unless it was released meanwhile
    }
  }

  private void renewed(long sent) {
    synchronized (this) {
      if (state == State.HELD) {
        renewedAt = sent - renewedAt > 0 ? sent : renewedAt; // answers may overtake each other
        arm();
      }
      if (state != State.LOST) {
        return;
      }
    }
    store.forget(name, owner); // nobody has it, and nobody is to wait for it
  }

  /** One that hung has used up its pause. */
  private void failed(long begun, Throwable failure) {
    long left;
    synchronized (this) {
      if (state != State.HELD) {
        return;
      }
      pause = Math.max(SHORTEST_PAUSE, pause / 2);
      long now = time.nanos();
      long next = Math.max(now - begun, pause) + begun;
      left = deadlineAt() - now;
      if (next - deadlineAt() < 0) {
        renewal = renewalAt(next);
      }
    }
    Locks.log.warn(
        "lock {}: a renewal failed; it is lost in {} unless another succeeds",
        name,
        Duration.ofNanos(Math.max(0, left)),
        failure);
  }

  private void lose(State from) {
    LostLock lost;
    synchronized (this) {
      if (state != from) {
        return;
      }
      state = State.LOST;
      cancelAlarms();
      if (worker != null) {
        worker.interrupt();
        interrupted = true;
      }
      lost = new LostLock(name, token, Duration.ofNanos(time.nanos() - renewedAt), period);
      notifyAll();
    }
    ended.accept(this);
    time.run(() -> tell(lost));
  }

  private void tell(LostLock lost) {
    Locks.log.error(
        "lock {}: lost {} after its last renewal; its period is {}",
        name,
        lost.sinceRenewal(),
        period);
    try {
      onLost.accept(lost);
    } catch (Throwable e) { // also of a class that is missing
      Locks.log.error("lock {}: what was to be told of its loss failed", name, e);
    }
  }

  /** From here on the thread is interrupted when the lock is lost. */
  synchronized void work(Thread thread) {
    worker = thread;
    if (state == State.LOST) {
      thread.interrupt();
      interrupted = true;
    }
  }

  /** The worker's thread is not interrupted any more, and does not know that it was. */
  synchronized void endWork() {
    worker = null;
    if (interrupted) {
      interrupted = false;
      Thread.interrupted();
    }
  }

  /** Waits for the end of the lock. */
  synchronized void awaitEnd() throws InterruptedException {
    while (state == State.HELD) {
      wait();
    }
  }

  @Override
  public String name() {
    return name;
  }

  @Override
  public long token() {
    return token;
  }

  @Override
  public boolean isHeld() {
    return !remaining().isZero();
  }

  @Override
  public synchronized boolean isLost() {
    return state == State.LOST;
  }

  @Override
  public Duration remaining() {
    synchronized (this) {
      if (state != State.HELD) {
        return Duration.ZERO;
      }
      long left = deadlineAt() - time.nanos();
      if (left > 0) {
        return Duration.ofNanos(left);
      }
    }
    lose(State.HELD); // the deadline's thread is late
    return Duration.ZERO;
  }

  @Override
  public void guard(Connection transaction) {
    requireTransaction(transaction);
    if (!isHeld()) {
      throw lost(null);
    }
    if (!store.guard(transaction, name, owner)) {
      time.run(this::renew); // which finds out; the transaction may see an older time
      throw lost(null);
    }
  }

  private void requireTransaction(Connection connection) {
    try {
      if (connection.getAutoCommit()) {
        throw new IllegalArgumentException(
            "the connection is in autocommit mode, in which lock '"
                + name
                + "' guards nothing; set it to false and commit behind the write");
      }
    } catch (SQLException e) {
      throw new IllegalArgumentException("the connection is of no use any more", e);
    }
  }

  LockLostException lost(@Nullable Throwable cause) {
    return new LockLostException(
        "lock '"
            + name
            + "' is not held any more: what it protects may be done by another; roll back, and try"
            + " again with a new one",
        cause);
  }

  @Override
  public void close() {
    synchronized (this) {
      if (state != State.HELD) {
        return;
      }
      state = State.CLOSING;
      cancelAlarms();
      notifyAll();
    }
    boolean interrupted = Thread.interrupted(); // a pool would give no connection
    try {
      if (released()) {
        synchronized (this) {
          state = State.CLOSED;
        }
        ended.accept(this);
      } else {
        lose(State.CLOSING); // it had been another's
      }
    } finally {
      if (interrupted) {
        Thread.currentThread().interrupt();
      }
    }
  }

  /**
   * Releases in a transaction that is guarded: the lock is free with its commit. If it is rolled
   * back, the lock is released a moment later.
   */
  void releaseWith(Connection transaction) {
    if (!isHeld() || !store.releaseWith(transaction, name, owner)) {
      throw lost(null);
    }
    synchronized (this) {
      if (state != State.HELD) {
        throw lost(null);
      }
      state = State.CLOSED;
      cancelAlarms();
      notifyAll();
    }
    forgetLater();
    ended.accept(this);
  }

  /** Again and again while the transaction is open, which locks the row; at its end it is free. */
  private void forgetLater() {
    time.at(
        time.nanos() + UNTIL_THE_COMMIT,
        () ->
            time.run(
                () -> {
                  if (!store.forget(name, owner) && time.nanos() - deadlineAt() < 0) {
                    forgetLater();
                  }
                }));
  }

  /** What cannot be written is tried twice; then the lock is free when its lease ends. */
  private boolean released() {
    try {
      return store.release(name, owner);
    } catch (Throwable first) {
      Locks.log.debug("lock {}: not released, trying again", name, first);
    }
    try {
      store.release(name, owner); // the first may have taken effect
    } catch (Throwable second) {
      Locks.log.warn("lock {}: not released, trying again", name, second);
      forgetLater();
    }
    return true;
  }

  @Override
  public String toString() {
    return "HeldLock[" + name + ", token " + token + "]";
  }
}
