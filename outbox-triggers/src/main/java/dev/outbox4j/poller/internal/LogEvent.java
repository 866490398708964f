package dev.outbox4j.poller.internal;

import dev.outbox4j.poller.PollerFailure;
import java.util.Locale;
import org.slf4j.event.Level;

/** What lines of the log tell of pollers, by names that stay. What does not heal is an error. */
public enum LogEvent {
  TICK_START(Level.DEBUG),
  TICK_COMPLETE(Level.DEBUG),
  FETCH_EMPTY(Level.DEBUG),
  BATCH_COMPLETE(Level.DEBUG),
  LEASE_ACQUIRE_SKIPPED(Level.DEBUG),
  LEASE_RELEASED_BY_OTHERS(Level.INFO),
  HANDLER_SESSION_ENDED(Level.INFO),
  HANDLER_RETRY(Level.INFO),
  POLLER_FINISHED(Level.INFO),
  LEASE_ACQUIRE_FAILED(Level.WARN),
  CHECKPOINT_LOAD_FAILED(Level.ERROR),
  SOURCE_DESCRIPTOR_FAILED(Level.ERROR),
  FETCH_FAILED(Level.WARN),
  NORMALIZE_FAILED(Level.ERROR),
  HANDLER_FAILED(Level.WARN),
  COMMIT_FAILED(Level.WARN),
  LEASE_RENEW_FAILED(Level.WARN),
  LEASE_RELEASE_FAILED(Level.WARN),
  HANDLER_SESSION_END_FAILED(Level.WARN),
  ROW_QUARANTINED(Level.WARN),
  ROWS_HELD_BACK(Level.WARN),
  SOURCE_WARNING(Level.WARN);

  private final Level level;

  LogEvent(Level level) {
    this.level = level;
  }

  static LogEvent of(PollerFailure step) {
    return valueOf(step.event().toUpperCase(Locale.ROOT));
  }

  /** {@return the level of its lines} */
  public Level level() {
    return level;
  }

  /** {@return its name, as lines have it} */
  public String text() {
    return name().toLowerCase(Locale.ROOT);
  }
}
