package dev.outbox4j.monitor;

/** Where an instance is. */
public enum MonitorStatus {
  /** Its first check has not begun. */
  PENDING,
  /** It is checked, or waits for its next check. */
  RUNNING,
  /** Somebody has suspended it: no check begins until it is resumed. */
  SUSPENDED,
  /** It has ended as its {@link MonitorOutcome} says. */
  COMPLETED,
  /** Its check failed for good, or its message became a dead letter. */
  FAILED,
  /** Its check has found that nobody needs it any more. */
  CANCELED,
  /** Somebody has terminated it. */
  TERMINATED;

  /** {@return whether it has ended} */
  public boolean isFinished() {
    return compareTo(SUSPENDED) > 0;
  }
}
