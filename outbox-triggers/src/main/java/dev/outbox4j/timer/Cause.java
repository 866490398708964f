package dev.outbox4j.timer;

/** Why a run was made. */
public enum Cause {
  /** Its instant came, and was noticed in time. */
  SCHEDULED,
  /** Its instant was missed, see {@link CatchUp}. */
  CATCH_UP,
  /** A new deployment started, see {@link Timer#runOnStartup}. */
  STARTUP,
  /** Somebody asked for it. */
  MANUAL,
  /** Somebody asked for the instants of a time that is over. */
  BACKFILL
}
