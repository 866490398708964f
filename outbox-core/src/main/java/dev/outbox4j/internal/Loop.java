package dev.outbox4j.internal;

import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.locks.LockSupport;
import java.util.function.Consumer;

/**
 * A thread of the engine that repeats one step and survives whatever the step throws. Signals that
 * come while it is awake, or in a crowd, collapse into one.
 *
 * <p>Whoever interrupts the thread means: look again. So an interrupt ends no wait for good and
 * never ends the loop.
 */
public final class Loop {
  /** What a step returns to end the loop. */
  public static final long END = -1;

  private static final long LAST_DITCH = TimeUnit.MILLISECONDS.toNanos(100);

  private final Thread thread;
  private final Step step;
  private final Consumer<Throwable> failed;
  private final Backoff backoff = new Backoff();
  private final AtomicBoolean signalled = new AtomicBoolean();
  private volatile boolean stopping;
  private volatile boolean abandoned;

  /** One step. */
  @FunctionalInterface
  public interface Step {
    /**
     * Takes the step on the loop's thread.
     *
     * @param woken whether a signal ended the wait before it
     * @return how many nanoseconds to wait for a signal before the next step, or {@link #END}
     */
    long take(boolean woken) throws Exception;
  }

  /**
   * Creates a loop that is not started.
   *
   * @param threads makes its thread
   * @param name the thread's name
   * @param step what to repeat
   * @param failed told what a step threw; may itself fail
   */
  public Loop(EngineThreads threads, String name, Step step, Consumer<Throwable> failed) {
    this.thread = threads.newThread(this::run, name);
    this.step = step;
    this.failed = failed;
  }

  public void start() {
    thread.start();
  }

  /** Tells the steps to come to an end, and ends the pause under way. */
  public void stop() {
    stopping = true;
    signal();
    LockSupport.unpark(thread);
  }

  /** Stops, and interrupts the step under way. */
  public void interrupt() {
    stop();
    thread.interrupt();
  }

  /** Ends the loop after the step under way, which is interrupted. */
  public void abandon() {
    abandoned = true;
    interrupt();
  }

  public boolean stopping() {
    return stopping;
  }

  /** Ends the wait under way, or the next one; from any thread. */
  public void signal() {
    if (signalled.compareAndSet(false, true)) {
      LockSupport.unpark(thread);
    }
  }

  /** Waits for the loop to end; false if the deadline passed before. */
  public boolean join(long deadline) {
    boolean interrupted = false;
    try {
      while (thread.isAlive()) {
        long left = deadline - System.nanoTime();
        if (left <= 0) {
          return false;
        }
        try {
          TimeUnit.NANOSECONDS.timedJoin(thread, left);
        } catch (InterruptedException e) {
          interrupted = true; // each wait is bounded by its deadline and goes on
        }
      }
      return true;
    } finally {
      if (interrupted) {
        Thread.currentThread().interrupt();
      }
    }
  }

  /** Waits without hearing signals, which stay pending; a stop that comes meanwhile ends it. */
  public void pause(long nanos) {
    boolean stoppingBefore = stopping;
    long until = System.nanoTime() + nanos;
    for (long left = nanos;
        left > 0 && !abandoned && stopping == stoppingBefore;
        left = until - System.nanoTime()) {
      LockSupport.parkNanos(this, left);
      Thread.interrupted();
    }
  }

  private void run() {
    boolean woken = false;
    while (!abandoned) {
      try {
        Thread.interrupted(); // user code's: it would make waits and connections fail
        long wait = step.take(woken);
        if (wait == END) {
          return;
        }
        backoff.reset();
        woken = await(wait);
      } catch (Throwable failure) {
        woken = false;
        survive(failure);
      }
    }
  }

  private void survive(Throwable failure) {
    try {
      failed.accept(failure);
      pause(backoff.nextNanos());
    } catch (Throwable worse) { // such as no memory even for that
      LockSupport.parkNanos(this, LAST_DITCH);
    }
  }

  private boolean await(long nanos) {
    long until = System.nanoTime() + nanos;
    while (!signalled.get() && !abandoned) {
      long left = until - System.nanoTime();
      if (left <= 0) {
        return false;
      }
      LockSupport.parkNanos(this, left);
      Thread.interrupted();
    }
    return signalled.compareAndSet(true, false);
  }
}
