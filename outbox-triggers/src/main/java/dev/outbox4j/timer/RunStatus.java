package dev.outbox4j.timer;

/** Where a run is. */
public enum RunStatus {
  /** It waits for another run of its timer to end. */
  WAITING,
  /** Its message is there: it waits for its handler or its next attempt, or is handled. */
  BEGUN,
  /** Its handler has done it. */
  SUCCEEDED,
  /** It is a dead letter. */
  FAILED,
  /** It is not to be, since another run lasted. */
  SKIPPED,
  /** Another run was started in its place. */
  TERMINATED
}
