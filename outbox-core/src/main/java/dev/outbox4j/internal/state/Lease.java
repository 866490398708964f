package dev.outbox4j.internal.state;

/**
 * A promise of the server, as long as it is known to last. Instants are {@link System#nanoTime()}.
 */
public final class Lease {
  /**
   * Conservative: counted from before the statement was sent, so never later than the server's
   * instant.
   */
  private volatile long expiresAt;

  private volatile long renewAt;

  /** The last try to renew failed. */
  private volatile boolean overdue;

  /** A lease that was set by a statement that was sent then. */
  public Lease(long sentAt, long nanos) {
    renewed(sentAt, nanos);
  }

  /** The lease was set by a statement that was sent then. */
  public void renewed(long sentAt, long nanos) {
    expiresAt = sentAt + nanos;
    renewAt = sentAt + nanos / 2;
    overdue = false;
  }

  public void renewLater(long at) {
    renewAt = at;
    overdue = true;
  }

  public long expiresAt() {
    return expiresAt;
  }

  public boolean dueAt(long now) {
    return now - renewAt >= 0;
  }

  public boolean overdue() {
    return overdue;
  }
}
