package dev.outbox4j.timer;

/**
 * What becomes of an instant while a run of its timer has not ended: while it is handled, or waits
 * for its handler or its next attempt.
 *
 * <p>Runs that are caught up under {@link CatchUp#ALL}, started by hand or backfilled wait for one
 * another and are never skipped, whatever the policy; once begun they can be cancelled or
 * terminated by the next instant as any other.
 */
public enum OverlapPolicy {
  /** It is skipped. */
  SKIP,
  /** It waits for the end of the run, unless one waits already: then it is skipped. */
  BUFFER_ONE,
  /** It waits for the end of all before it; at most 1,000 wait, and what is above is skipped. */
  BUFFER_ALL,
  /** The run is asked to stop, and the instant waits for its end. What waited before is skipped. */
  CANCEL_OTHER,
  /**
   * The run is fenced off, so that nothing it does to its message counts any more, and the instant
   * starts at once. What waited before is skipped.
   */
  TERMINATE_OTHER,
  /** It starts beside the run. */
  ALLOW_ALL
}
