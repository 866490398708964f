package dev.outbox4j.poller;

import java.util.List;
import java.util.Optional;

/**
 * What became of a tick: of one look at the source, with all batches that it led to.
 *
 * @param outcome what it came to
 * @param totalProcessed how many rows were handled and are behind the position now, those in
 *     quarantine not counted; of a dry tick, how many would be handled by the first batch
 * @param batches how many batches these were
 * @param quarantined how many rows went to quarantine
 * @param rows of a dry tick the first batch, else empty
 * @param failure at which step it failed, if it did
 * @param reason why, in words, if it failed
 */
public record TickResult(
    Outcome outcome,
    long totalProcessed,
    int batches,
    int quarantined,
    List<RowChange> rows,
    Optional<PollerFailure> failure,
    Optional<String> reason) {

  /** Copies the list. */
  public TickResult {
    rows = List.copyOf(rows);
  }

  /** What a tick came to. */
  public enum Outcome {
    /** Rows were handled. */
    PROCESSED,
    /** There was nothing to handle. */
    EMPTY,
    /** There may be rows, which wait for transactions that are open. */
    HELD_BACK,
    /** Another node has the poller. */
    STANDBY,
    /** The batch before failed, and the time for the next attempt has not come. */
    WAITING,
    /** The poller is paused. */
    PAUSED,
    /** The poller has come to its end. */
    FINISHED,
    /** It failed; what was handled before that is counted. */
    FAILED
  }
}
