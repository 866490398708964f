package dev.outbox4j.postgres;

/**
 * When a publish statement sends a notification along with its rows. In a transaction at repeatable
 * read or serializable, which cannot see who has fallen asleep since it began, {@link #AUTO} and
 * {@link #ALWAYS} notify for every queue.
 */
public enum NotifyMode {
  /**
   * Only while a subscriber of the queue sleeps past the moment the message is due. The default: a
   * notification makes its transaction's commit wait its turn behind all others that notify.
   */
  AUTO,
  /** For every queue with a row that is due at once; for delayed rows as {@link #AUTO}. */
  ALWAYS,
  /**
   * Never; subscribers find rows by polling. The mode for two-phase commit (XA): PostgreSQL refuses
   * to prepare a transaction that has notified. With {@link #AUTO} that fails only while a
   * subscriber sleeps, so at low load and not in a test without subscribers.
   */
  NEVER
}
