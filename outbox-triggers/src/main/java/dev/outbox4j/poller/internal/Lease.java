package dev.outbox4j.poller.internal;

import dev.outbox4j.OutboxStoreException;
import java.time.Duration;
import java.util.concurrent.Future;
import org.jspecify.annotations.Nullable;

/**
 * The lease of a poller, from when it was acquired to when it is released. It is renewed at a third
 * of its life, on another thread than that of the handler. Thread-safe.
 *
 * <p>That its time is over by this process's clock is no loss: whether another node took it is
 * known by the record alone, and whoever has it still may go on.
 */
final class Lease {
  private static final int RENEWALS_IN_A_LIFE = 3;
  private static final long LONGEST_PAUSE = Duration.ofSeconds(1).toNanos();

  private final PollerStore store;
  private final Renewals renewals;
  private final PollerLog log;
  private final long token;
  private final long life;

  // guarded by this
  private long renewedAt;
  private @Nullable Future<?> next;
  private @Nullable String lost;
  private @Nullable Thread worker;
  private boolean interrupted;
  private boolean ended;

  /**
   * Begins to renew.
   *
   * @param sent when the statement was sent that acquired it, by the monotonic clock
   */
  Lease(PollerStore store, Renewals renewals, PollerLog log, long token, Duration life, long sent) {
    this.store = store;
    this.renewals = renewals;
    this.log = log;
    this.token = token;
    this.life = life.toNanos();
    this.renewedAt = sent;
  }

  synchronized void begin() {
    schedule(life / RENEWALS_IN_A_LIFE);
  }

  private void schedule(long nanos) {
    if (!ended && lost == null) {
      next = renewals.after(nanos, this::renew);
    }
  }

  private void renew() {
    long sent = System.nanoTime();
    try {
      if (store.renew(token)) {
        renewed(sent);
      } else {
        lose(store.whyLost(token));
      }
    } catch (Throwable e) { // after an Error, too, the next one may succeed
      log.renewFailed(
          token,
          Duration.ofNanos(System.nanoTime() - sent),
          "it is tried again, and the lease has %s left: %s"
              .formatted(remaining(), Failures.words(e)));
      synchronized (this) {
        schedule(Math.min(LONGEST_PAUSE, life / RENEWALS_IN_A_LIFE / 2));
      }
    }
  }

  private synchronized void renewed(long sent) {
    renewedAt = Math.max(renewedAt, sent);
    schedule(life / RENEWALS_IN_A_LIFE);
  }

  /**
   * Asks whether it is still this node's, if its time is over, as after a process stood still: its
   * renewal may come later than what it does next.
   *
   * @throws OutboxStoreException if that could not be asked
   */
  void confirm() {
    if (isLost() || !remaining().isZero()) {
      return;
    }
    long sent = System.nanoTime();
    if (store.renew(token)) {
      synchronized (this) {
        renewedAt = Math.max(renewedAt, sent);
      }
    } else {
      lose(store.whyLost(token));
    }
  }

  /** It is another's, or will be as soon as that one looks. */
  synchronized void lose(String why) {
    if (ended || lost != null) {
      return;
    }
    lost = why;
    if (worker != null) {
      worker.interrupt();
      interrupted = true;
    }
  }

  /** Nobody renews it any more. */
  synchronized void end() {
    ended = true;
    if (next != null) {
      next.cancel(false);
    }
  }

  /** From here on the thread is interrupted when the lease is lost. */
  synchronized void work(Thread thread) {
    worker = thread;
    if (lost != null) {
      thread.interrupt();
      interrupted = true;
    }
  }

  /** The thread is not interrupted any more, and does not know that it was. */
  synchronized void endWork() {
    worker = null;
    if (interrupted) {
      interrupted = false;
      Thread.interrupted();
    }
  }

  long token() {
    return token;
  }

  synchronized boolean isLost() {
    return lost != null;
  }

  /** Why it was lost; null if it was not. */
  synchronized @Nullable String whyLost() {
    return lost;
  }

  /** How long ago it was renewed, or acquired. */
  synchronized Duration sinceRenewal() {
    return Duration.ofNanos(System.nanoTime() - renewedAt);
  }

  synchronized Duration remaining() {
    long left = renewedAt + life - System.nanoTime();
    return lost != null || left < 0 ? Duration.ZERO : Duration.ofNanos(left);
  }
}
