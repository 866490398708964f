package dev.outbox4j.examples.run;

import java.time.Duration;
import java.util.concurrent.Callable;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;

/**
 * Waits for what others do. A condition is looked at whenever something has happened, and four
 * times a second, since not all that happens is told. One thread waits, any thread may tell.
 */
public final class Waits {
  private static final Duration MOST = Duration.ofMinutes(2);
  private static final Duration LOOK_AGAIN = Duration.ofMillis(250);

  private final Semaphore happened = new Semaphore(0);

  /** Creates it; nothing has happened yet. */
  public Waits() {}

  /** Something has happened for which somebody may wait. */
  public void happened() {
    happened.release();
  }

  /**
   * Waits until something is so.
   *
   * @param what it, in words
   * @param condition whether it is
   * @throws IllegalStateException if it is not so after two minutes
   * @throws InterruptedException if this thread is interrupted
   * @throws Exception if it cannot be told
   */
  public void until(String what, Callable<Boolean> condition) throws Exception {
    long begun = System.nanoTime();
    while (!condition.call()) {
      if (System.nanoTime() - begun > MOST.toNanos()) {
        throw new IllegalStateException(what + " is not so after " + MOST.toSeconds() + " s");
      }
      if (happened.tryAcquire(LOOK_AGAIN.toMillis(), TimeUnit.MILLISECONDS)) {
        happened.drainPermits(); // one look is for all that has happened before it
      }
    }
  }
}
