package dev.outbox4j.job;

/**
 * Something about a queue of jobs that somebody is to look at.
 *
 * @param rule what is wrong
 * @param detail the observed values, for people
 */
public record JobAlert(Rule rule, String detail) {

  /** What may be wrong. */
  public enum Rule {
    /** More of the jobs that ended lately are dead letters than usual. */
    DEAD_LETTER_RATIO,
    /** A message has been due for long, and longer at each look. */
    OLDEST_RISING,
    /** A timer that enqueues jobs has missed an instant. */
    MISSED_TIMER,
    /** No job was completed for long. */
    NO_SUCCESS
  }
}
