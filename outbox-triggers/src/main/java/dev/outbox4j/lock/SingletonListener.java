package dev.outbox4j.lock;

import java.time.Duration;
import java.util.Objects;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/**
 * Does something in one process at a time: where it holds its lock. The others stand by. One that
 * is stopped is replaced at once, one that was killed when its lease is over. Whoever loses the
 * lock stops the work and stands by. Thread-safe.
 */
public final class SingletonListener implements AutoCloseable {
  private static final Duration DEVELOPMENT_PERIOD = Duration.ofSeconds(15);
  private static final Duration SHORTEST_POLLING = Duration.ofSeconds(15);
  private static final Duration AFTER_A_FAILURE = Duration.ofSeconds(1);

  private final Locks locks;
  private final SingletonLock lock;
  private final ListenerWork work;
  private final CountDownLatch stopping = new CountDownLatch(1);
  private @Nullable Thread thread; // guarded by this
  private boolean waiting; // guarded by this
  private @Nullable Lease lease; // guarded by this
  private boolean working; // guarded by this

  private SingletonListener(Locks locks, SingletonLock lock, ListenerWork work) {
    this.locks = locks;
    this.lock = lock;
    this.work = work;
  }

  static SingletonListener of(Locks locks, String name, ListenerWork work) {
    SingletonLock lock =
        locks.lock(name).period(SingletonLock.LONGEST_PERIOD).polling(Duration.ofSeconds(60));
    return new SingletonListener(locks, lock, Objects.requireNonNull(work, "work"));
  }

  /**
   * Sets for how long the lock is held unless it is renewed: what passes before another process
   * takes the place of one that was killed.
   *
   * @param period from 15 s to 60 s; default 60 s
   * @return a listener that differs in this
   * @throws IllegalArgumentException if it is out of range
   */
  public SingletonListener period(Duration period) {
    return new SingletonListener(locks, lock.period(period), work);
  }

  /**
   * Sets what is best where processes are killed often, such as by a debugger: a period of 15 s.
   *
   * @return a listener that differs in this
   */
  public SingletonListener forDevelopment() {
    return period(DEVELOPMENT_PERIOD);
  }

  /**
   * Sets how often a process that stands by looks whether the lock is free, beside at each release
   * that is heard of and at the end of the holder's lease.
   *
   * @param polling at least 15 s; default 60 s
   * @return a listener that differs in this
   * @throws IllegalArgumentException if it is shorter
   */
  public SingletonListener recoveryPolling(Duration polling) {
    if (polling.compareTo(SHORTEST_POLLING) < 0) {
      throw new IllegalArgumentException(
          "recoveryPolling is " + polling + "; it must be at least " + SHORTEST_POLLING);
    }
    return new SingletonListener(locks, lock.polling(polling), work);
  }

  /**
   * Looks only when a release is heard of, and at the end of the holder's lease.
   *
   * @return a listener that differs in this
   */
  public SingletonListener withoutRecoveryPolling() {
    return new SingletonListener(locks, lock.polling(null), work);
  }

  /**
   * Sets what is told when the lock was lost while the work was done here. The work is stopped in
   * any case.
   *
   * @param onLost told once of each loss, on a thread of its own, before the lease is over on the
   *     server, or when a statement finds that it is another's; what it throws is logged
   * @return a listener that differs in this
   */
  public SingletonListener onLost(Consumer<LostLock> onLost) {
    return new SingletonListener(locks, lock.onLost(onLost), work);
  }

  /** {@return what it waits for, with all that was set} */
  SingletonLock lock() {
    return lock;
  }

  /**
   * Starts: waits for the lock on a thread of its own, and then starts the work.
   *
   * @throws IllegalStateException if it was started before, or the {@link Locks} are not started
   */
  public synchronized void start() {
    if (thread != null) {
      throw new IllegalStateException("this listener was started before; build another");
    }
    locks.addStarted(this);
    thread = locks.threads().newThread(this::run, "listener-" + lock.name());
    thread.start();
  }

  /**
   * Stops the work if it is done here, waits until it is stopped, and releases the lock.
   * Idempotent. The start of the work itself cannot be waited for by itself: called there, this
   * returns at once, and the work is stopped behind it.
   */
  public void stop() {
    Thread running;
    synchronized (this) {
      running = thread;
      if (running == null) {
        return;
      }
      stopping.countDown();
      if (waiting) {
        running.interrupt();
      }
    }
    if (running != Thread.currentThread()) {
      join(running);
    }
    locks.remove(this);
  }

  private static void join(Thread thread) {
    boolean interrupted = false;
    while (thread.isAlive()) {
      try {
        thread.join();
      } catch (InterruptedException e) {
        interrupted = true; // the work is stopped all the same
      }
    }
    if (interrupted) {
      Thread.currentThread().interrupt();
    }
  }

  /** Stops. */
  @Override
  public void close() {
    stop();
  }

  /** {@return whether the work is done here now} */
  public synchronized boolean isHolder() {
    return working && lease != null && lease.isHeld();
  }

  LocksHealth.Listener health() {
    return new LocksHealth.Listener(lock.name(), isHolder());
  }

  private boolean stopped() {
    return stopping.getCount() == 0;
  }

  private void run() {
    while (!stopped() && !locks.isStopped()) {
      try {
        Lease acquired = await(() -> lock.acquireLease(this::stopped));
        if (acquired != null) {
          hold(acquired);
        }
      } catch (Throwable e) { // such as a missing table, or a class; or the locks were stopped
        if (!stopped() && !locks.isStopped()) {
          Locks.log.error("listener {}: failed, trying again", lock.name(), e);
          pause();
        }
      }
    }
  }

  /** Waits for something, unless this is stopped. */
  private <T> @Nullable T await(Wait<T> wait) {
    synchronized (this) {
      if (stopped()) {
        return null;
      }
      Thread.interrupted(); // the work's own
      waiting = true;
    }
    try {
      return wait.await();
    } catch (InterruptedException e) { // by stop(), or by nobody with a reason
      return null;
    } finally {
      synchronized (this) {
        waiting = false;
        Thread.interrupted(); // it is for the wait alone, and not for the work
      }
    }
  }

  private interface Wait<T> {
    @Nullable T await() throws InterruptedException;
  }

  private synchronized void setWorking(boolean working) {
    this.working = working;
  }

  private void hold(Lease acquired) {
    synchronized (this) {
      lease = acquired;
    }
    boolean failed = false;
    try (acquired) {
      if (!stopped()) {
        AutoCloseable started = Objects.requireNonNull(work.start(acquired), "what stops the work");
        try {
          setWorking(true);
          awaitEnd(acquired);
        } finally {
          setWorking(false);
          close(started);
        }
      }
    } catch (Throwable e) {
      failed = true;
      Locks.log.error("listener {}: its work could not be started", lock.name(), e);
    } finally {
      synchronized (this) {
        lease = null;
      }
    }
    if (failed) {
      pause();
    }
  }

  private void awaitEnd(Lease acquired) {
    while (!stopped() && acquired.isHeld()) {
      await(
          () -> {
            acquired.awaitEnd();
            return true;
          });
    }
  }

  private void close(AutoCloseable started) {
    try {
      started.close();
    } catch (Throwable e) {
      Locks.log.error("listener {}: its work could not be stopped", lock.name(), e);
    }
  }

  private void pause() {
    await(() -> stopping.await(AFTER_A_FAILURE.toMillis(), TimeUnit.MILLISECONDS));
  }

  @Override
  public String toString() {
    return "SingletonListener[" + lock.name() + "]";
  }
}
