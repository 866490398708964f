package dev.outbox4j.poller;

import java.time.Duration;

/** About the batch that a handler is called with. Thread-safe. */
public interface PollContext {
  /** {@return the poller} */
  Poller poller();

  /**
   * {@return which attempt at these rows this is, from 1; more than 1 also of parts of a batch that
   * has failed, and if a node that may have handled them died, has lost its lease, or has
   * interrupted its handler as it stopped}
   */
  int attempt();

  /** {@return the position before the batch} */
  Position before();

  /** {@return the position after the batch, which is written when the handler has returned} */
  Position after();

  /** {@return a number that grows with each lease of this poller, for fencing} */
  long token();

  /** {@return how long the lease lasts unless it is renewed; it is renewed at a third of that} */
  Duration leaseRemaining();

  /**
   * {@return whether the lease was lost: another node may handle these rows, and the position will
   * not be written, so the handler should throw} Its thread is interrupted when that is noticed.
   */
  boolean isLeaseLost();

  /** {@return whether this node stops; what the handler has done until it returns counts} */
  boolean isStopping();

  /** {@return whether the row was in quarantine and is handled again by itself} */
  boolean isRedriven();
}
