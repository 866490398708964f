package dev.outbox4j.dlq;

import java.time.Instant;
import java.util.List;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/** What is known of the runs of this process. Thread-safe. */
final class RetentionState {
  private @Nullable Instant lastRunAt;
  private @Nullable DeadLetterRetentionReport lastRun;
  private @Nullable String failure;

  /** Notes a run; empty if it was not this process's turn. */
  synchronized void ran(Optional<DeadLetterRetentionReport> report) {
    failure = null;
    report
        .filter(DeadLetterRetentionReport::finished)
        .ifPresent(
            finished -> {
              lastRunAt = Instant.now();
              lastRun = finished;
            });
  }

  /**
   * Tells whether the last run has left something to be done, or to be looked at: what it told is
   * told until the next one of this process, so that one is not left to another process.
   */
  synchronized boolean isOwing() {
    return lastRun != null && !lastRun.problems().isEmpty();
  }

  synchronized void failed(Throwable reason) {
    failure = Words.of(reason);
  }

  synchronized DeadLetterRetentionHealth health(boolean running) {
    List<String> problems =
        failure != null ? List.of(failure) : lastRun == null ? List.of() : lastRun.problems();
    return new DeadLetterRetentionHealth(
        running, Optional.ofNullable(lastRunAt), Optional.ofNullable(lastRun), problems);
  }
}
