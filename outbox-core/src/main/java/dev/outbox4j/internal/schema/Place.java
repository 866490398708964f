package dev.outbox4j.internal.schema;

/** One of the three tables. */
public enum Place {
  /** The messages. */
  OUTBOX,
  /** The sleeping subscribers. */
  SLEEPERS,
  /** The dead letters. */
  DEAD_LETTERS
}
