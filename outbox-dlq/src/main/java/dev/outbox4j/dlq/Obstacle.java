package dev.outbox4j.dlq;

/** What may be against putting a letter back, in words. */
final class Obstacle {
  /** Somebody has the letter in hand. */
  static final String LOCKED = "another transaction has it locked";

  /** Its message was put back before, or another one has its id. */
  static final String LIVE_ID = "a message with its id is in the outbox";

  /** Its message has a successor. */
  static final String LIVE_TIMER = "a live message has its timer id";

  private Obstacle() {}
}
