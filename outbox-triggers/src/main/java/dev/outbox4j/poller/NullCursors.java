package dev.outbox4j.poller;

/** What becomes of rows whose cursor is null. */
public enum NullCursors {
  /** A source whose cursor may be null is refused. */
  REFUSED,

  /** Such a row is not handled until it gets a cursor. */
  IGNORED
}
