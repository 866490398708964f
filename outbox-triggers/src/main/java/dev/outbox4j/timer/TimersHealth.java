package dev.outbox4j.timer;

import dev.outbox4j.SubscriberHealth;
import java.time.Duration;
import java.time.Instant;
import java.util.List;
import java.util.Optional;

/**
 * What the timers of an application know of themselves on this node, read from memory. What is on
 * record was read up to 30 s before the last look. Instants are this process's clock, where nothing
 * else is said.
 *
 * @param application whose timers they are
 * @param subscriber the subscriber that handles the runs
 * @param lastTick when a look at the timers last succeeded, if one did
 * @param failing true while the latest look failed, or none has ended for two minutes
 * @param failingSince since when that has been so; present exactly while {@code failing}
 * @param lastFailure what failed last, if anything did
 * @param clockOffset by how much this process's clock is ahead of the server's; below zero if it is
 *     behind. Nothing depends on this process's clock; above 60 s the log says so
 * @param timers the application's timers as they were on record; empty until they were read
 * @param alerts what somebody is to look at, of the timers that this node has
 */
public record TimersHealth(
    String application,
    SubscriberHealth subscriber,
    Optional<Instant> lastTick,
    boolean failing,
    Optional<Instant> failingSince,
    Optional<String> lastFailure,
    Duration clockOffset,
    List<TimerStatus> timers,
    List<TimerAlert> alerts) {

  /** Copies the lists. */
  public TimersHealth {
    timers = List.copyOf(timers);
    alerts = List.copyOf(alerts);
  }

  /**
   * Tells whether the subscriber is healthy, timers were looked at, and the latest look succeeded.
   * Alerts do not make a node unhealthy: to start it anew would mend none of them.
   */
  public boolean healthy() {
    return subscriber.healthy() && lastTick.isPresent() && !failing;
  }
}
