package dev.outbox4j.dlq;

import java.time.Instant;
import java.util.List;
import java.util.Optional;

/**
 * How the retention of one process is.
 *
 * @param running whether it was started, and not stopped
 * @param lastRunAt when it last came to the end of a run, by this machine's clock
 * @param lastRun what that run has done
 * @param problems what is wrong: how the last try failed, or what the last run of this process
 *     tells; empty if nothing is. That another process runs it is no problem
 */
public record DeadLetterRetentionHealth(
    boolean running,
    Optional<Instant> lastRunAt,
    Optional<DeadLetterRetentionReport> lastRun,
    List<String> problems) {
  /** Copies the list. */
  public DeadLetterRetentionHealth {
    problems = List.copyOf(problems);
  }

  /** {@return whether nothing is wrong} */
  public boolean healthy() {
    return problems.isEmpty();
  }
}
