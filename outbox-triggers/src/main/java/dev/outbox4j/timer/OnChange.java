package dev.outbox4j.timer;

/** What becomes of a timer's past when its schedule is another than the one on record. */
public enum OnChange {
  /** The schedule begins now: what it would have been due at before counts as decided. */
  RESET,
  /** The new schedule goes on from where the old one was, and may have missed instants. */
  KEEP
}
