package dev.outbox4j.poller.internal;

import dev.outbox4j.internal.Warnings;
import dev.outbox4j.poller.PollerFailure;
import dev.outbox4j.poller.Position;
import dev.outbox4j.poller.TickResult;
import java.time.Duration;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.slf4j.event.Level;

/**
 * Writes the log of one poller: each line has the name of an event and the same keys. What may come
 * often is limited, and says how many lines were left out. Thread-safe.
 */
final class PollerLog {
  private static final Logger log = LoggerFactory.getLogger("dev.outbox4j.poller.Pollers");
  private static final String LINE =
      "{} application={} poller={} token={} position={} rows={} attempt={} took_ms={} reason={}";

  private final Warnings warnings;
  private final String application;
  private final String poller;

  PollerLog(Warnings warnings, String application, String poller) {
    this.warnings = warnings;
    this.application = application;
    this.poller = poller;
  }

  void tickStart() {
    debug("tick_start", 0, Position.beginning(), 0, 0, Duration.ZERO, "");
  }

  void acquireSkipped(StateRow row, String why) {
    debug("lease_acquire_skipped", row.token(), Position.beginning(), 0, 0, Duration.ZERO, why);
  }

  void fetchEmpty(long token, Position position, Duration took) {
    debug("fetch_empty", token, position, 0, 0, took, "");
  }

  void batchComplete(long token, Position position, int rows, int attempt, Duration took) {
    debug("batch_complete", token, position, rows, attempt, took, "");
  }

  void tickComplete(TickResult result, Duration took) {
    if (log.isDebugEnabled()) {
      log.debug(
          LINE + " outcome={} total_processed={}",
          "tick_complete",
          application,
          poller,
          "",
          "",
          result.totalProcessed(),
          "",
          took.toMillis(),
          result.reason().orElse(""),
          result.outcome(),
          result.totalProcessed());
    }
  }

  void retry(long token, Position position, int rows, int attempt) {
    say(Level.INFO, "handler_retry", token, position, rows, attempt, Duration.ZERO, "");
  }

  void quarantined(long token, Position position, int attempt, String reason) {
    say(Level.WARN, "row_quarantined", token, position, 1, attempt, Duration.ZERO, reason);
  }

  void heldBack(long token, Position position, String reason) {
    say(Level.WARN, "rows_held_back", token, position, 0, 0, Duration.ZERO, reason);
  }

  void sessionNotEnded(String reason) {
    say(
        Level.WARN,
        "handler_session_end_failed",
        0,
        Position.beginning(),
        0,
        0,
        Duration.ZERO,
        reason);
  }

  void warned(String warning) {
    say(Level.WARN, "source_warning", 0, Position.beginning(), 0, 0, Duration.ZERO, warning);
  }

  void changed(String event, String reason) {
    say(Level.INFO, event, 0, Position.beginning(), 0, 0, Duration.ZERO, reason);
  }

  void failed(
      PollerFailure step,
      long token,
      Position position,
      int rows,
      int attempt,
      Duration took,
      String reason) {
    say(level(step), step.event(), token, position, rows, attempt, took, reason);
  }

  /** What does not heal by itself is an error. */
  private static Level level(PollerFailure step) {
    return switch (step) {
      case CHECKPOINT, SOURCE, NORMALIZE -> Level.ERROR;
      case LEASE, FETCH, HANDLER, COMMIT, RELEASE -> Level.WARN;
    };
  }

  private void say(
      Level level,
      String event,
      long token,
      Position position,
      int rows,
      int attempt,
      Duration took,
      String reason) {
    warnings.say(
        log,
        level,
        Runnable::run,
        poller + " " + event,
        LINE,
        event,
        application,
        poller,
        token,
        position.cursor().orElse(""),
        rows,
        attempt,
        took.toMillis(),
        reason);
  }

  private void debug(
      String event,
      long token,
      Position position,
      int rows,
      int attempt,
      Duration took,
      String reason) {
    if (log.isDebugEnabled()) {
      log.debug(
          LINE,
          event,
          application,
          poller,
          token,
          position.cursor().orElse(""),
          rows,
          attempt,
          took.toMillis(),
          reason);
    }
  }
}
