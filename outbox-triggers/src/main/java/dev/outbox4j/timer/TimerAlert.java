package dev.outbox4j.timer;

import java.time.Duration;
import java.time.Instant;

/**
 * Something about a timer that somebody is to look at. Instants are the server's.
 *
 * @param rule what is wrong
 * @param timer the timer's name
 * @param since since when it has been so; for {@link Rule#NOT_ON_RECORD} and {@link
 *     Rule#SCHEDULE_FAILS}, when it was noticed
 * @param lasting how long that is
 */
public record TimerAlert(Rule rule, String timer, Instant since, Duration lasting) {

  /** What may be wrong. */
  public enum Rule {
    /** It has been due for more than a minute, and no node has decided on it. */
    OVERDUE,
    /**
     * A run began longer ago than {@link Timer#alertWhenRunningFor} says, and has not ended; it may
     * be tried again meanwhile.
     */
    HUNG,
    /** An instant is longer ago than {@link Timer#alertWhenMissedFor} says, and has no run. */
    MISSED,
    /** No run has succeeded for longer than {@link Timer#alertWithoutSuccessFor} says. */
    NO_SUCCESS,
    /** No node has ever put it on record, or it was removed. */
    NOT_ON_RECORD,
    /** Its schedule throws when it is asked for the next instant. */
    SCHEDULE_FAILS
  }
}
