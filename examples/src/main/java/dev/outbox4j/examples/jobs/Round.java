package dev.outbox4j.examples.jobs;

import dev.outbox4j.job.JobAlert;
import java.util.List;
import java.util.Map;
import java.util.Optional;

/**
 * What a look at the dead letters came to.
 *
 * @param replayed how many went back into the queue
 * @param discarded how many were given up
 * @param kept the ids of those that stay, with the reason of each
 * @param probe why nothing was replayed, if the analysis service does not work
 * @param alerts what somebody is to look at
 */
record Round(
    long replayed,
    long discarded,
    Map<Long, String> kept,
    Optional<String> probe,
    List<JobAlert> alerts) {
  /** Copies the collections. */
  Round {
    kept = Map.copyOf(kept);
    alerts = List.copyOf(alerts);
  }
}
