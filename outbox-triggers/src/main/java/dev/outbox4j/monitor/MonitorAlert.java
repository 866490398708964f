package dev.outbox4j.monitor;

import java.time.Duration;
import java.time.Instant;

/**
 * Something about an instance that somebody is to look at. Instants are the server's.
 *
 * @param rule what is wrong
 * @param type the name of the instance's type
 * @param id the instance's id
 * @param since since when it has been so
 * @param lasting how long that is
 */
public record MonitorAlert(Rule rule, String type, String id, Instant since, Duration lasting) {

  /** What may be wrong. */
  public enum Rule {
    /**
     * It has been due for more than a minute, and no check was committed: no node runs, they do not
     * know its type, its check lasts, or its row is locked.
     */
    OVERDUE,
    /** It has failed within the last day, and was neither restarted nor purged. */
    FAILED
  }
}
