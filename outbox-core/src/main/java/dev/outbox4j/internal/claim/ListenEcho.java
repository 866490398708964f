package dev.outbox4j.internal.claim;

import java.util.concurrent.TimeUnit;

/**
 * Whether a notification that was sent through the store comes back through LISTEN. If it does not,
 * the two have different databases, and nothing else would say so. Thread-safe.
 */
final class ListenEcho {
  /**
   * Above the time in which a source finds that its connection is dead, which has news of its own.
   */
  static final long LIMIT = TimeUnit.SECONDS.toNanos(20);

  static final long AGAIN = TimeUnit.SECONDS.toNanos(60);

  private enum State {
    /** LISTEN is not in force. */
    OFF,
    /** Nothing has been sent since LISTEN came into force. */
    DUE,
    SENDING,
    AWAITED,
    /** The time is over. */
    MISSED,
    HEARD
  }

  private State state = State.OFF;
  private long since;

  synchronized void connected() {
    state = State.DUE;
  }

  synchronized void disconnected() {
    state = State.OFF;
  }

  /** Tells whether it is to be sent now; who is told so sends it. */
  synchronized boolean takeDue(long now) {
    if (state == State.DUE || (state == State.MISSED && now - since >= AGAIN)) {
      state = State.SENDING;
      return true;
    }
    return false;
  }

  /** Its transaction has committed; it may have been heard before. */
  synchronized void sent(long now) {
    if (state == State.SENDING) {
      state = State.AWAITED;
      since = now;
    }
  }

  /** It could not be sent; the next idle moment tries again. */
  synchronized void unsent() {
    if (state == State.SENDING) {
      state = State.DUE;
    }
  }

  /** It has come; false if LISTEN is not in force any more. */
  synchronized boolean heard() {
    if (state == State.OFF) {
      return false;
    }
    state = State.HEARD;
    return true;
  }

  /** Tells, once, that its time is over. */
  synchronized boolean takeMissed(long now) {
    if (state == State.AWAITED && now - since >= LIMIT) {
      state = State.MISSED;
      since = now;
      return true;
    }
    return false;
  }

  /** Returns how long it may still take; the longest time there is if nothing is awaited. */
  synchronized long left(long now) {
    return state == State.AWAITED ? Math.max(0, since + LIMIT - now) : Long.MAX_VALUE;
  }
}
