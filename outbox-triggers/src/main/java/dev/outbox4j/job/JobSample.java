package dev.outbox4j.job;

import java.time.Duration;
import java.time.Instant;
import java.util.Optional;

/**
 * A look at a queue of jobs, of which alert rules are made. By the server's clock.
 *
 * @param at when it was taken
 * @param recent how jobs ended in the 15 minutes before, the latest 10,000 if there were more
 * @param baseline how jobs ended in the 24 hours before those, of each hour the latest 400 if there
 *     were more
 * @param oldest how long the message has been due that has been due longest; empty if none is
 * @param lastSuccess when a job was last completed, if that is on record
 * @param since since when the queue is known to have had jobs that were due; empty if none is on
 *     record
 */
public record JobSample(
    Instant at,
    Outcomes recent,
    Outcomes baseline,
    Optional<Duration> oldest,
    Optional<Instant> lastSuccess,
    Optional<Instant> since) {

  /**
   * How jobs ended.
   *
   * @param completed how many well
   * @param deadLettered how many in the dead letters, those that their handler rejected included
   */
  public record Outcomes(long completed, long deadLettered) {
    /** No job ended. */
    public static final Outcomes NONE = new Outcomes(0, 0);

    /**
     * Checks the numbers.
     *
     * @throws IllegalArgumentException if one is less than 0
     */
    public Outcomes {
      if (completed < 0 || deadLettered < 0) {
        throw new IllegalArgumentException(
            "completed is %d and deadLettered is %d; both must be 0 or more"
                .formatted(completed, deadLettered));
      }
    }

    /** {@return how many jobs ended} */
    public long total() {
      return completed + deadLettered;
    }

    /** {@return the share of those that are in the dead letters, 0 to 1; 0 if none ended} */
    public double deadLetterRatio() {
      return total() == 0 ? 0 : (double) deadLettered / total();
    }
  }
}
