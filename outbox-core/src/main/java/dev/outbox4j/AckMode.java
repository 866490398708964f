package dev.outbox4j;

/** What a handler's end means when it does not say so itself. */
public enum AckMode {
  /** A normal return acks, an exception retries. The default. */
  AUTO,
  /**
   * The handler decides every message with {@link Delivery#decide(Outcome)} or by the outcome it
   * returns. Returning without a decision is a fault of the handler: the message is retried and the
   * fault logged. An exception retries.
   */
  MANUAL,
  /**
   * A normal return acks, an exception dead-letters the message at once, without a retry. A run
   * past the handler timeout is no exception of the handler's, nor is a codec's that does not blame
   * the bytes: both are retried as in the other modes.
   */
  REJECT_ON_ERROR
}
