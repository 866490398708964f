package dev.outbox4j.test.internal.kit;

import java.time.Duration;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;

/**
 * Interrupts the thread that started it while a task of it runs past a limit. What it has
 * interrupted is not interrupted any more once the task has ended, and its own thread ends with
 * {@link #close}.
 */
final class Watchdog implements AutoCloseable {
  /** A handler may swallow an interrupt and wait again. */
  private static final long AGAIN_NANOS = TimeUnit.SECONDS.toNanos(1);

  private final Thread watched = Thread.currentThread();
  private final Thread thread = new Thread(this::watch, "outbox-test-watchdog");
  private final long endsAt;

  // guarded by this object
  private boolean running;
  private boolean interruptIsOurs;
  private boolean closed;
  private StackTraceElement @Nullable [] place;

  private Watchdog(Duration limit) {
    this.endsAt = System.nanoTime() + limit.toNanos();
  }

  /** Begins to watch the calling thread. */
  static Watchdog start(Duration limit) {
    Watchdog watchdog = new Watchdog(limit);
    watchdog.thread.setDaemon(true);
    watchdog.thread.start();
    return watchdog;
  }

  /** Runs a task on the thread that is watched. */
  void run(Runnable task) {
    begin();
    try {
      task.run();
    } finally {
      end();
    }
  }

  /** Returns where the task was when it was interrupted; null if none was. */
  synchronized StackTraceElement @Nullable [] place() {
    return place;
  }

  private synchronized void begin() {
    running = true;
  }

  private synchronized void end() {
    running = false;
    if (interruptIsOurs) {
      Thread.interrupted(); // it was meant for the task, not for the test
      interruptIsOurs = false;
    }
  }

  private synchronized void watch() {
    while (!closed) {
      long left = endsAt - System.nanoTime();
      if (left <= 0 && running) {
        interrupt();
      }
      try {
        TimeUnit.NANOSECONDS.timedWait(this, left > 0 ? left : AGAIN_NANOS);
      } catch (InterruptedException nobodyElseKnowsThisThread) {
        return;
      }
    }
  }

  private void interrupt() {
    if (place == null) {
      place = watched.getStackTrace();
    }
    interruptIsOurs |= !watched.isInterrupted();
    watched.interrupt();
  }

  @Override
  public void close() {
    synchronized (this) {
      closed = true;
      notifyAll();
    }
    boolean interrupted = false;
    while (thread.isAlive()) {
      try {
        thread.join();
      } catch (InterruptedException e) {
        interrupted = true; // of the caller, who is to see it
      }
    }
    if (interrupted) {
      Thread.currentThread().interrupt();
    }
  }
}
