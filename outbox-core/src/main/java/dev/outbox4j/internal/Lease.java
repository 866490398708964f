package dev.outbox4j.internal;

/**
 * A promise of the server, as long as it is known to last. Instants are {@link System#nanoTime()}.
 */
final class Lease {
  /**
   * Conservative: counted from before the statement was sent, so never later than the server's
   * instant.
   */
  private volatile long expiresAt;

  private volatile long renewAt;

  /** The last try to renew failed. */
  private volatile boolean overdue;

  Lease(long sentAt, long nanos) {
    renewed(sentAt, nanos);
  }

  /** The lease was set by a statement that was sent then. */
  void renewed(long sentAt, long nanos) {
    expiresAt = sentAt + nanos;
    renewAt = sentAt + nanos / 2;
    overdue = false;
  }

  void renewLater(long at) {
    renewAt = at;
    overdue = true;
  }

  long expiresAt() {
    return expiresAt;
  }

  boolean dueAt(long now) {
    return now - renewAt >= 0;
  }

  boolean overdue() {
    return overdue;
  }
}
