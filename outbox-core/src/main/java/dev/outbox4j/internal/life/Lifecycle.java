package dev.outbox4j.internal.life;

import dev.outbox4j.OutboxException;
import dev.outbox4j.SubscriberState;
import java.time.Duration;
import java.util.concurrent.CompletableFuture;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The life of something that is started and stopped any number of times, each time as a new run.
 * Thread-safe. A second caller of {@link #stop} waits for the first one's drain.
 *
 * @param <R> a run
 */
final class Lifecycle<R extends Lifecycle.Run> {
  private static final Logger log = LoggerFactory.getLogger(Lifecycle.class);

  private final String name;
  private final boolean stopOnShutdown;
  private final Object lock = new Object();

  // written under the lock, read anywhere
  private volatile SubscriberState state = SubscriberState.NEW;
  private volatile @Nullable R run;
  private CompletableFuture<Void> drained = CompletableFuture.completedFuture(null);
  private @Nullable Thread shutdownHook;
  private @Nullable Thread stopper;

  /** From one start to the next stop. */
  interface Run {
    /** Starts its threads; has started none if it throws. */
    void start();

    /** Ends them in order; true if nothing was left behind. */
    boolean drain();

    /** Tells observers that it has ended. */
    void stopped();
  }

  Lifecycle(String name, boolean stopOnShutdown) {
    this.name = name;
    this.stopOnShutdown = stopOnShutdown;
  }

  SubscriberState state() {
    return state;
  }

  /** Returns the run that was begun last. */
  @Nullable R run() {
    return run;
  }

  /** Begins a run; false if one is going on. */
  boolean start(Supplier<R> newRun) {
    synchronized (lock) {
      if (state == SubscriberState.RUNNING) {
        return false;
      }
      if (state == SubscriberState.DRAINING) {
        throw new OutboxException(
            "Subscriber '" + name + "' is draining; start it again once stop() has returned");
      }
      R next = newRun.get();
      run = next;
      state = SubscriberState.RUNNING;
      try {
        next.start();
      } catch (RuntimeException | Error refused) {
        state = SubscriberState.STOPPED;
        next.stopped();
        throw refused;
      }
      if (stopOnShutdown && shutdownHook == null) {
        addShutdownHook();
      }
      return true;
    }
  }

  void stop() {
    R running;
    CompletableFuture<Void> done;
    synchronized (lock) {
      if (state == SubscriberState.DRAINING) {
        if (stopper == Thread.currentThread()) {
          return; // an observer of the stop, which would wait for itself
        }
        running = null;
        done = drained;
      } else if (state == SubscriberState.RUNNING) {
        running = run;
        state = SubscriberState.DRAINING;
        done = new CompletableFuture<>();
        drained = done;
        stopper = Thread.currentThread();
      } else {
        return;
      }
    }
    if (running == null) {
      done.join();
      return;
    }
    try {
      drain(running);
    } finally {
      done.complete(null);
    }
  }

  private void drain(R running) {
    long begun = System.nanoTime();
    try {
      boolean clean = running.drain();
      log.info(
          "[{}] stopped after {} ms{}",
          name,
          Duration.ofNanos(System.nanoTime() - begun).toMillis(),
          clean ? "" : ", not everything in flight was finished");
    } finally {
      running.stopped(); // before another start, whose observers must not be taken for this one's
      synchronized (lock) {
        state = SubscriberState.STOPPED;
        stopper = null;
        removeShutdownHook();
      }
    }
  }

  private void stopInHook() {
    synchronized (lock) {
      shutdownHook = null; // it runs; it can no longer be removed
    }
    stop();
  }

  private void addShutdownHook() {
    Thread hook = new Thread(this::stopInHook, "outbox-" + name + "-shutdown");
    try {
      Runtime.getRuntime().addShutdownHook(hook);
      shutdownHook = hook;
    } catch (IllegalStateException shuttingDown) {
      log.warn("[{}] started while the JVM is shutting down: nothing will stop it", name);
    }
  }

  private void removeShutdownHook() {
    if (shutdownHook != null) {
      try {
        Runtime.getRuntime().removeShutdownHook(shutdownHook);
      } catch (IllegalStateException shuttingDown) {
        log.debug("[{}] the JVM is shutting down already", name, shuttingDown);
      }
      shutdownHook = null;
    }
  }
}
