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
    tell(LogEvent.TICK_START, 0, Position.beginning(), 0, 0, Duration.ZERO, "");
  }

  void acquireSkipped(StateRow row, String why) {
    tell(
        LogEvent.LEASE_ACQUIRE_SKIPPED,
        row.token(),
        Position.beginning(),
        0,
        0,
        Duration.ZERO,
        why);
  }

  void fetchEmpty(long token, Position position, Duration took) {
    tell(LogEvent.FETCH_EMPTY, token, position, 0, 0, took, "");
  }

  void batchComplete(long token, Position position, int rows, int attempt, Duration took) {
    tell(LogEvent.BATCH_COMPLETE, token, position, rows, attempt, took, "");
  }

  void tickComplete(TickResult result, Duration took) {
    if (log.isDebugEnabled()) {
      log.debug(
          "[{}] " + LINE + " outcome={} total_processed={}",
          warnings.subscriber(),
          LogEvent.TICK_COMPLETE.text(),
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
    tell(LogEvent.HANDLER_RETRY, token, position, rows, attempt, Duration.ZERO, "");
  }

  void quarantined(long token, Position position, int attempt, String reason) {
    tell(LogEvent.ROW_QUARANTINED, token, position, 1, attempt, Duration.ZERO, reason);
  }

  void heldBack(long token, Position position, String reason) {
    tell(LogEvent.ROWS_HELD_BACK, token, position, 0, 0, Duration.ZERO, reason);
  }

  void renewFailed(long token, Duration took, String reason) {
    tell(LogEvent.LEASE_RENEW_FAILED, token, Position.beginning(), 0, 0, took, reason);
  }

  void sessionNotEnded(String reason) {
    changed(LogEvent.HANDLER_SESSION_END_FAILED, reason);
  }

  void warned(String warning) {
    changed(LogEvent.SOURCE_WARNING, warning);
  }

  void changed(LogEvent event, String reason) {
    tell(event, 0, Position.beginning(), 0, 0, Duration.ZERO, reason);
  }

  void failed(
      PollerFailure step,
      long token,
      Position position,
      int rows,
      int attempt,
      Duration took,
      String reason) {
    tell(LogEvent.of(step), token, position, rows, attempt, took, reason);
  }

  private void tell(
      LogEvent event,
      long token,
      Position position,
      int rows,
      int attempt,
      Duration took,
      String reason) {
    if (event.level() != Level.DEBUG) {
      warnings.say(
          log,
          event.level(),
          Runnable::run,
          poller + " " + event.text(),
          LINE,
          event.text(),
          application,
          poller,
          token,
          position.cursor().orElse(""),
          rows,
          attempt,
          took.toMillis(),
          reason);
    } else if (log.isDebugEnabled()) {
      log.debug(
          "[{}] " + LINE,
          warnings.subscriber(),
          event.text(),
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
