package dev.outbox4j.monitor;

import dev.outbox4j.SubscriberHealth;
import java.time.Instant;
import java.util.List;
import java.util.Map;
import java.util.Optional;

/**
 * What the monitors of an application know of themselves on this node, read from memory. What is on
 * record was read up to 30 s before the last look. Instants are this process's clock, where nothing
 * else is said.
 *
 * @param application whose monitors they are
 * @param subscriber the subscriber that runs the checks
 * @param lastLook when a look at the instances last succeeded, if one did
 * @param failing true while the latest look failed, or none has ended for two minutes, or the
 *     instance of a check could not be read or begun, and none was since
 * @param failingSince since when that has been so; present exactly while {@code failing}
 * @param lastFailure what failed last, if anything did
 * @param counts how many instances there are of each status, counted up to {@value #MOST_COUNTED};
 *     empty until they were counted
 * @param alerts what somebody is to look at: what is overdue, then what has failed, of each at most
 *     {@value #MOST_ALERTS}, the longest lasting first
 */
public record MonitorsHealth(
    String application,
    SubscriberHealth subscriber,
    Optional<Instant> lastLook,
    boolean failing,
    Optional<Instant> failingSince,
    Optional<String> lastFailure,
    Map<MonitorStatus, Long> counts,
    List<MonitorAlert> alerts) {

  /** How far the instances of a status are counted: {@value}. */
  public static final int MOST_COUNTED = 10_000;

  /** How many alerts of each rule are told: {@value}. */
  public static final int MOST_ALERTS = 100;

  /** Copies the collections. */
  public MonitorsHealth {
    counts = Map.copyOf(counts);
    alerts = List.copyOf(alerts);
  }

  /**
   * Tells whether the subscriber is healthy, instances were looked at, and neither that nor the
   * beginning of checks fails. Alerts do not make a node unhealthy: to start it anew would mend
   * none of them.
   */
  public boolean healthy() {
    return subscriber.healthy() && lastLook.isPresent() && !failing;
  }
}
