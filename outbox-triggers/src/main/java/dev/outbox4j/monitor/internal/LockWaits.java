package dev.outbox4j.monitor.internal;

import java.util.concurrent.TimeUnit;

/**
 * How long the commit of a check waits for a locked row. Whoever locks one may lock many: once a
 * wait was in vain, the next ones are short for a while, so that they do not take all workers.
 * Thread-safe.
 */
final class LockWaits {
  private static final long REMEMBERED = TimeUnit.SECONDS.toNanos(10);
  private static final String LONG = "2s";
  private static final String SHORT = "100ms";

  private volatile long inVainAt = System.nanoTime() - REMEMBERED;

  /** {@return the server's {@code lock_timeout}} */
  String timeout() {
    return System.nanoTime() - inVainAt < REMEMBERED ? SHORT : LONG;
  }

  /** A row was waited for, and stayed locked. */
  void inVain() {
    inVainAt = System.nanoTime();
  }
}
