package dev.outbox4j.job;

import dev.outbox4j.SubscriberHealth;
import java.util.List;
import java.util.Optional;

/**
 * What a job queue knows of itself on this node, read from memory.
 *
 * @param queue the queue
 * @param subscriber the subscriber that runs the jobs; empty if there is no handler here
 * @param failing true while the latest look at the queue failed, or the latest purge
 * @param lastFailure what failed last, if anything did
 * @param sample the latest look, if there was one; taken every five minutes
 * @param alerts what somebody is to look at, of the latest looks; missed timers are not among them
 * @param leftTypes the types that have no handler here, and of which a job was left to other
 *     processes in the last two minutes, in order
 */
public record JobsHealth(
    String queue,
    Optional<SubscriberHealth> subscriber,
    boolean failing,
    Optional<String> lastFailure,
    Optional<JobSample> sample,
    List<JobAlert> alerts,
    List<String> leftTypes) {

  /** Copies the lists. */
  public JobsHealth {
    alerts = List.copyOf(alerts);
    leftTypes = List.copyOf(leftTypes);
  }

  /**
   * Tells whether the subscriber is healthy and the latest look succeeded. Alerts, and types
   * without a handler, do not make a node unhealthy: to start it anew would mend none of them.
   */
  public boolean healthy() {
    return subscriber.map(SubscriberHealth::healthy).orElse(true) && !failing;
  }
}
