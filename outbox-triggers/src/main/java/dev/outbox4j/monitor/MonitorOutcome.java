package dev.outbox4j.monitor;

/** How an instance was completed. */
public enum MonitorOutcome {
  /** Its check said that it is done. */
  CONDITION_MET,
  /** Its time was over first. */
  EXPIRED,
  /** It had as many checks as its type allows. */
  MAX_ITERATIONS
}
