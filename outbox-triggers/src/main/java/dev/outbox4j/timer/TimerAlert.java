package dev.outbox4j.timer;

import java.time.Duration;
import java.time.Instant;
import java.util.Optional;

/**
 * Something about a timer that somebody is to look at. Instants are the server's.
 *
 * @param rule what is wrong
 * @param timer the timer's name
 * @param since since when it has been so; for {@link Rule#NOT_ON_RECORD} and {@link
 *     Rule#SCHEDULE_FAILS}, when it was noticed
 * @param lasting how long that is
 * @param run the run that hangs; empty for all rules but {@link Rule#HUNG}
 * @param instants how many instants are {@link Rule#OVERDUE} or {@link Rule#MISSED}, counted up to
 *     {@value #MOST_INSTANTS} from when the timer is due; 0 for the other rules, and if it is not
 *     known: another schedule is on record, it fails, or so many alerts are counted that it would
 *     take long
 */
public record TimerAlert(
    Rule rule,
    String timer,
    Instant since,
    Duration lasting,
    Optional<TimerStatus.Started> run,
    int instants) {

  /** How many instants are counted: {@value}. */
  public static final int MOST_INSTANTS = 1_000;

  /** What may be wrong. */
  public enum Rule {
    /** It has been due for more than a minute, and no node has decided on it. */
    OVERDUE,
    /**
     * A run began longer ago than {@link Timer#alertWhenRunningFor} says, and has not ended; it may
     * be tried again meanwhile. One whose message no worker has taken yet has not begun.
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
