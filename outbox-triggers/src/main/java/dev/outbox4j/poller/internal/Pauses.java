package dev.outbox4j.poller.internal;

/** How a tick waits, and learns that its node stops. */
interface Pauses {
  /** Waits, unless the node stops. */
  void pause(long nanos);

  /** Whether the node stops. */
  boolean isStopping();

  /** Whether the handler was interrupted since the node has waited long enough. */
  boolean isInterrupted();
}
