package dev.outbox4j;

/** What becomes of a message whose {@linkplain OutboxMessage#timerId timer id} a live one has. */
public enum IfLive {
  /** The new message is not published, also while the live one is being handled. */
  DROP,

  /**
   * The new message takes the place of the live one, with an id of its own: of one that waits, or
   * of one that is being handled, whose outcome then changes nothing any more. In either case a
   * handler begins with it after the publisher's transaction has been committed, and not before the
   * handler that has the live one is done.
   *
   * <p>It is due when it says. If that is at once, it is due when the live one was, if that is
   * earlier: a message that is published again and again keeps its place.
   */
  REPLACE
}
