package dev.outbox4j.examples.poller;

import java.time.Duration;
import java.util.function.BooleanSupplier;

/** Waits for what others do. */
final class Waits {
  private static final Duration MOST = Duration.ofMinutes(2);
  private static final long PAUSE_MILLIS = 20;

  private Waits() {}

  /**
   * Waits until something is so.
   *
   * @param what it, in words
   * @param condition whether it is
   */
  static void until(String what, BooleanSupplier condition) throws InterruptedException {
    long begun = System.nanoTime();
    while (!condition.getAsBoolean()) {
      if (System.nanoTime() - begun > MOST.toNanos()) {
        throw new IllegalStateException(what + " is not so after " + MOST.toSeconds() + " s");
      }
      Thread.sleep(PAUSE_MILLIS);
    }
  }
}
