package dev.outbox4j.internal.run;

import java.util.concurrent.atomic.AtomicReference;

/**
 * Frees a permit once, when the stage has ended and the handler's thread is done with it as well:
 * there are no more threads than permits. Thread-safe.
 */
final class PendingStage {
  private enum State {
    ON_THREAD,
    ENDED_ON_THREAD,
    PENDING,
    ENDED
  }

  private final AtomicReference<State> state = new AtomicReference<>(State.ON_THREAD);
  private final Runnable freePermit;

  PendingStage(Runnable freePermit) {
    this.freePermit = freePermit;
  }

  /** The stage is complete, or the timeout gave it up. */
  void ended() {
    if (!endsOnThread() && state.compareAndSet(State.PENDING, State.ENDED)) {
      freePermit.run();
    }
  }

  /** The stage is complete; true if the handler's thread is still there, and goes on by itself. */
  boolean endsOnThread() {
    return state.compareAndSet(State.ON_THREAD, State.ENDED_ON_THREAD)
        || state.get() == State.ENDED_ON_THREAD;
  }

  /** Returns true if the stage has ended, so that the thread keeps the permit. */
  boolean leaveThread() {
    return !state.compareAndSet(State.ON_THREAD, State.PENDING);
  }
}
