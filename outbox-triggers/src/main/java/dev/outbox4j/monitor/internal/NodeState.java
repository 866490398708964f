package dev.outbox4j.monitor.internal;

import dev.outbox4j.SubscriberHealth;
import dev.outbox4j.monitor.MonitorAlert;
import dev.outbox4j.monitor.MonitorStatus;
import dev.outbox4j.monitor.MonitorsHealth;
import java.time.Duration;
import java.time.Instant;
import java.time.InstantSource;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** What a node knows of its monitors. Written by the thread that looks, read by any. */
public final class NodeState {
  private static final Logger log = LoggerFactory.getLogger(NodeState.class);

  /** One comes every 30 s. */
  private static final Duration LONGEST_LOOK = Duration.ofMinutes(2);

  private final String application;
  private final InstantSource clock;

  // guarded by this
  private @Nullable Instant lastLook;
  private long lastLookNanos;
  private @Nullable Instant failingSince;
  private @Nullable String lastFailure;
  private volatile @Nullable Instant unreadSince; // written under the lock
  private Map<MonitorStatus, Long> counts = Map.of();
  private List<MonitorAlert> alerts = List.of();

  /**
   * Creates the state of a node that has not looked yet.
   *
   * @param application whose monitors
   * @param clock this process's clock
   */
  public NodeState(String application, InstantSource clock) {
    this.application = application;
    this.clock = clock;
  }

  /** A look has succeeded. */
  synchronized void looked(Map<MonitorStatus, Long> counted, List<MonitorAlert> found) {
    lastLook = clock.instant();
    lastLookNanos = System.nanoTime();
    failingSince = null;
    Set<String> known = alerts.stream().map(NodeState::key).collect(Collectors.toSet());
    for (MonitorAlert alert : found) {
      if (!known.contains(key(alert))) {
        log.warn(
            "monitor {}/{}: {} since {}, which is {}",
            alert.type(),
            alert.id(),
            alert.rule(),
            alert.since(),
            alert.lasting());
      }
    }
    counts = Map.copyOf(counted);
    alerts = List.copyOf(found);
  }

  /** A look has failed. */
  synchronized void failed(Throwable failure) {
    if (failingSince == null) {
      failingSince = clock.instant();
    }
    lastFailure = String.valueOf(failure.getMessage());
    log.warn("monitors of {}: a look failed, trying again", application, failure);
  }

  /** An instance could not be read, or its first check not be begun; it is tried again. */
  synchronized void unread(Throwable failure) {
    if (unreadSince == null) {
      unreadSince = clock.instant();
    }
    lastFailure = String.valueOf(failure.getMessage());
  }

  /** One could be read. */
  void read() {
    if (unreadSince != null) {
      clearUnread();
    }
  }

  private synchronized void clearUnread() {
    unreadSince = null;
  }

  private static String key(MonitorAlert alert) {
    return alert.rule() + " " + alert.id();
  }

  /**
   * Tells all of it.
   *
   * @param subscriber what the subscriber knows of itself
   * @return the health
   */
  public synchronized MonitorsHealth health(SubscriberHealth subscriber) {
    boolean hangs =
        failingSince == null
            && lastLook != null
            && System.nanoTime() - lastLookNanos > LONGEST_LOOK.toNanos();
    Instant ofLooks = hangs ? lastLook : failingSince;
    Instant since = ofLooks == null ? unreadSince : ofLooks;
    return new MonitorsHealth(
        application,
        subscriber,
        Optional.ofNullable(lastLook),
        since != null,
        Optional.ofNullable(since),
        hangs ? Optional.of("no look has ended since") : Optional.ofNullable(lastFailure),
        counts,
        alerts);
  }
}
