package dev.outbox4j;

/** Where a subscriber is in its life. A stopped subscriber may be started again. */
public enum SubscriberState {
  /** Built, not started yet. */
  NEW,
  /** Claims and dispatches. */
  RUNNING,
  /** Claims no more; finishes what is in flight. */
  DRAINING,
  /** All threads have ended, or the drain timed out. */
  STOPPED
}
