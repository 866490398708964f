package dev.outbox4j.monitor;

import java.time.Instant;
import java.util.Optional;

/**
 * Something that has happened to an instance.
 *
 * @param id grows with each entry of the application
 * @param execution which execution of the instance it was
 * @param kind what has happened
 * @param iteration how many checks were committed by then
 * @param name the name of the event, if it is one
 * @param detail what was said of it, such as a reason or an error; for an event its payload
 * @param at when, by the server's clock
 */
public record HistoryEntry(
    long id,
    long execution,
    Kind kind,
    long iteration,
    Optional<String> name,
    Optional<String> detail,
    Instant at) {

  /** What may happen. */
  public enum Kind {
    /** It was started. */
    STARTED,
    /** It was started anew by {@link MonitorControl#restart}. */
    RESTARTED,
    /** A check was committed, and another one follows. */
    CHECKED,
    /** An attempt at a check has failed. */
    ATTEMPT_FAILED,
    /** An event was raised. */
    EVENT,
    /** Somebody asked for the next check at once. */
    WOKEN,
    /** It was suspended. */
    SUSPENDED,
    /** It was resumed. */
    RESUMED,
    /** It was completed. */
    COMPLETED,
    /** It has failed. */
    FAILED,
    /** It was canceled by its check. */
    CANCELED,
    /** It was terminated. */
    TERMINATED
  }
}
