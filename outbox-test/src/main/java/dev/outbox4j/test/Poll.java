package dev.outbox4j.test;

import java.time.Duration;
import java.util.Objects;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import java.util.function.BooleanSupplier;
import java.util.function.Supplier;

/** Waits for what other threads, or other processes, bring about. */
final class Poll {
  private static final long PAUSE_NANOS = TimeUnit.MILLISECONDS.toNanos(5);

  private Poll() {}

  /** Looks at least twice; what is told of a failure is asked for when it is known. */
  static void until(BooleanSupplier condition, Duration limit, Supplier<String> failure) {
    Objects.requireNonNull(limit, "limit");
    long begun = System.nanoTime();
    while (!condition.getAsBoolean()) {
      if (Thread.interrupted()) {
        Thread.currentThread().interrupt();
        throw new AssertionError("Interrupted while waiting. " + failure.get());
      }
      if (System.nanoTime() - begun >= nanos(limit)) {
        if (condition.getAsBoolean()) {
          return;
        }
        throw new AssertionError(failure.get());
      }
      LockSupport.parkNanos(PAUSE_NANOS);
    }
  }

  private static long nanos(Duration limit) {
    return limit.compareTo(Duration.ofDays(1_000)) > 0 ? Long.MAX_VALUE : limit.toNanos();
  }
}
