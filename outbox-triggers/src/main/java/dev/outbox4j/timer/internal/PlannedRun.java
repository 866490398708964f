package dev.outbox4j.timer.internal;

import dev.outbox4j.timer.Cause;
import java.time.Instant;
import org.jspecify.annotations.Nullable;

/**
 * A run that a tick makes.
 *
 * @param instant the one it is for
 * @param cause why
 * @param missed those it stands for, its own included; null unless they were missed
 * @param fate what becomes of it at once
 */
public record PlannedRun(Instant instant, Cause cause, @Nullable Missed missed, Fate fate) {
  /** What becomes of a run. */
  public enum Fate {
    /** Its message is published. */
    BEGINS,
    /** It waits for others to end. */
    WAITS,
    /** It is on record, and ended. */
    SKIPPED
  }
}
