package dev.outbox4j.postgres.notify.internal;

import java.time.Duration;

/**
 * One connection of a driver, in autocommit mode, of which the owner holds the only reference. Used
 * by one thread at a time, except {@link #abort}.
 */
public interface ListenConnection {

  /**
   * Runs a statement and drops its rows.
   *
   * @throws Exception if it failed, or did not end within the limit; the connection is then of no
   *     further use
   */
  void execute(String sql, Duration limit) throws Exception;

  /**
   * Waits while notifications are delivered, until the limit is over or earlier.
   *
   * @throws Exception as soon as the connection is known to be dead
   */
  void await(Duration limit) throws Exception;

  /**
   * Makes a call that another thread has blocked in here end soon; that thread is interrupted as
   * well. Does not block itself.
   */
  void abort();

  /** Ends the session and the socket; idempotent, bounded in time, throws nothing. */
  void close();
}
