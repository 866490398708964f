package dev.outbox4j.timer;

/**
 * What becomes of instants that were missed: of those at which no node looked, for longer than the
 * {@linkplain Timer#onTime on-time threshold}.
 */
public enum CatchUp {
  /** They are counted and not run. */
  NONE,
  /** The latest one is run, and told how many there were and which was the first. */
  ONE,
  /** All are run, the oldest first and one at a time, at most 1,000 of them waiting at once. */
  ALL
}
