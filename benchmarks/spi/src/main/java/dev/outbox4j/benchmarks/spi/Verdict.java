package dev.outbox4j.benchmarks.spi;

/** What a handler makes of a message. */
public enum Verdict {
  /** Done. */
  ACK,
  /** Failed, to be tried again soon. */
  RETRY,
  /** Failed for good. */
  REJECT
}
