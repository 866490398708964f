package dev.outbox4j.timer.internal;

import dev.outbox4j.timer.Cause;
import dev.outbox4j.timer.internal.PlannedRun.Fate;
import java.time.Instant;
import org.jspecify.annotations.Nullable;

/** A run while a tick decides on it. Confined to one thread. */
final class RunInTick {
  enum State {
    WAITS,
    BEGUN,
    SKIPPED,
    TERMINATED
  }

  private final @Nullable OpenRun before;
  private final Instant instant;
  private final Cause cause;
  private final @Nullable Missed missed;
  private State state;
  private boolean cancelled;

  private RunInTick(
      @Nullable OpenRun before,
      Instant instant,
      Cause cause,
      @Nullable Missed missed,
      State state) {
    this.before = before;
    this.instant = instant;
    this.cause = cause;
    this.missed = missed;
    this.state = state;
  }

  static RunInTick open(OpenRun run) {
    return new RunInTick(
        run, run.instant(), run.cause(), null, run.begun() ? State.BEGUN : State.WAITS);
  }

  static RunInTick added(Instant instant, Cause cause, @Nullable Missed missed, State state) {
    return new RunInTick(null, instant, cause, missed, state);
  }

  Cause cause() {
    return cause;
  }

  boolean isBegun() {
    return state == State.BEGUN;
  }

  boolean isWaiting() {
    return state == State.WAITS;
  }

  void begin() {
    state = State.BEGUN;
  }

  void skip() {
    state = State.SKIPPED;
  }

  /**
   * Ends a run; one that would begin in this tick does not.
   *
   * @param inTurn whether it is never skipped: then it waits on
   */
  void terminate(boolean inTurn) {
    state = wasBegun() ? State.TERMINATED : notBegun(inTurn);
  }

  /** Asks a run to stop; one that would begin in this tick does not, see {@link #terminate}. */
  void cancel(boolean inTurn) {
    if (wasBegun()) {
      cancelled = true;
    } else {
      state = notBegun(inTurn);
    }
  }

  private static State notBegun(boolean inTurn) {
    return inTurn ? State.WAITS : State.SKIPPED;
  }

  private boolean wasBegun() {
    return before != null && before.begun();
  }

  boolean isAdded() {
    return before == null;
  }

  /** {@return whether it is a run that counts, of those that are added or stand no more} */
  int counts() {
    if (isAdded()) {
      return state == State.SKIPPED ? 0 : 1;
    }
    return state == State.SKIPPED ? -1 : 0;
  }

  void addTo(TickPlan.Runs runs) {
    if (before == null) {
      runs.added().add(new PlannedRun(instant, cause, missed, fate()));
      return;
    }
    long id = before.id();
    if (cancelled) {
      runs.cancelled().add(id);
    }
    switch (state) {
      case BEGUN -> {
        if (!before.begun()) {
          runs.begun().add(id);
        }
      }
      case SKIPPED -> runs.skipped().add(id);
      case TERMINATED -> runs.terminated().add(id);
      case WAITS -> {}
    }
  }

  private Fate fate() {
    return switch (state) {
      case BEGUN -> Fate.BEGINS;
      case WAITS -> Fate.WAITS;
      default -> Fate.SKIPPED;
    };
  }
}
