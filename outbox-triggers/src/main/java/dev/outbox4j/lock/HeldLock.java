package dev.outbox4j.lock;

import java.sql.Connection;
import java.time.Duration;

/**
 * A lock that was acquired. It is renewed, by a thread of its own, until it is closed or lost.
 * Thread-safe.
 */
public interface HeldLock extends AutoCloseable {

  /** {@return the lock's name, with its suffix} */
  String name();

  /**
   * {@return the fencing token} It is greater than that of every earlier holder of this lock. Write
   * it with what the lock protects, and refuse a write by a smaller one, where {@link #guard}
   * cannot do so.
   */
  long token();

  /**
   * Tells whether it is held, from memory. True is sure for {@link #remaining} at least.
   *
   * @return false if it was lost or closed
   */
  boolean isHeld();

  /** {@return whether it was lost before it was closed} */
  boolean isLost();

  /** {@return for how long it is held if it is not renewed; zero if it is not held} */
  Duration remaining();

  /**
   * Guards what a transaction writes: from here to its end nobody else acquires the lock, and it
   * can only be called while this one holds it. So a write that is committed was made by the
   * holder. Renewals go on meanwhile. The server ends the transaction if it is idle between two
   * statements for as long as {@link #remaining} was at this call, which is half of the period at
   * least while renewals succeed. Above READ COMMITTED it is refused if the transaction began
   * before the lock was acquired or a period ago, since it sees an older time.
   *
   * @param transaction a connection to the outbox's database, in a transaction
   * @throws LockLostException if the lock is not held, and then the transaction is to be rolled
   *     back
   * @throws dev.outbox4j.OutboxStoreException if the statement fails
   * @throws IllegalArgumentException if the connection is in autocommit mode
   */
  void guard(Connection transaction);

  /**
   * Releases the lock, and tells those who wait for it. Does nothing if it was lost, or closed
   * before. If the database cannot be reached, the lock is free when its lease ends.
   */
  @Override
  void close();
}
