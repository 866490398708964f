package dev.outbox4j.timer.internal;

import dev.outbox4j.SubscriberHealth;
import dev.outbox4j.timer.TimerAlert;
import dev.outbox4j.timer.TimerStatus;
import dev.outbox4j.timer.TimersHealth;
import java.time.Duration;
import java.time.Instant;
import java.time.InstantSource;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** What a node knows of its timers. Written by the thread that ticks, read by any. */
public final class NodeState {
  private static final Logger log = LoggerFactory.getLogger(NodeState.class);
  private static final Duration MOST_OFFSET = Duration.ofSeconds(60);

  /** One comes every 30 s. */
  private static final Duration LONGEST_TICK = Duration.ofMinutes(2);

  private final String application;
  private final InstantSource clock;

  // guarded by this
  private @Nullable Instant lastTick;
  private long lastTickNanos;
  private @Nullable Instant failingSince;
  private @Nullable String lastFailure;
  private Duration offset = Duration.ZERO;
  private boolean wrongClock;
  private List<TimerStatus> timers = List.of();
  private List<TimerAlert> alerts = List.of();

  /**
   * Creates the state of a node that has not looked yet.
   *
   * @param application whose timers
   * @param clock this process's clock
   */
  public NodeState(String application, InstantSource clock) {
    this.application = application;
    this.clock = clock;
  }

  /** A look has succeeded. */
  synchronized void ticked(Duration clockOffset) {
    lastTick = clock.instant();
    lastTickNanos = System.nanoTime();
    failingSince = null;
    offset = clockOffset;
    boolean wrong = clockOffset.abs().compareTo(MOST_OFFSET) > 0;
    if (wrong && !wrongClock) {
      log.warn(
          "timers of {}: this process's clock is {} off the server's; no timer depends on it, but"
              + " logs and handlers may",
          application,
          clockOffset);
    } else if (!wrong && wrongClock) {
      log.info("timers of {}: this process's clock is right again", application);
    }
    wrongClock = wrong;
  }

  /** A look has failed. */
  synchronized void failed(Throwable failure) {
    if (failingSince == null) {
      failingSince = clock.instant();
    }
    lastFailure = String.valueOf(failure.getMessage());
  }

  /** What is on record was read. */
  synchronized void read(List<TimerStatus> onRecord, List<TimerAlert> found) {
    Set<String> known = alerts.stream().map(NodeState::key).collect(Collectors.toSet());
    for (TimerAlert alert : found) {
      if (!known.contains(key(alert))) {
        log.warn(
            "timer {}: {} since {}, which is {}{}",
            alert.timer(),
            alert.rule(),
            alert.since(),
            alert.lasting(),
            details(alert));
      }
    }
    timers = List.copyOf(onRecord);
    alerts = List.copyOf(found);
  }

  private static String details(TimerAlert alert) {
    if (alert.instants() > 0) {
      return "; instants: " + alert.instants();
    }
    return alert.run().map(run -> "; run " + run.id() + " of " + run.instant()).orElse("");
  }

  /** Another run that hangs is told, too. */
  private static String key(TimerAlert alert) {
    return alert.rule() + " " + alert.timer() + alert.run().map(run -> " " + run.id()).orElse("");
  }

  /**
   * Tells all of it.
   *
   * @param subscriber what the subscriber knows of itself
   * @return the health
   */
  public synchronized TimersHealth health(SubscriberHealth subscriber) {
    boolean hangs =
        failingSince == null
            && lastTick != null
            && System.nanoTime() - lastTickNanos > LONGEST_TICK.toNanos();
    Instant since = hangs ? lastTick : failingSince;
    return new TimersHealth(
        application,
        subscriber,
        Optional.ofNullable(lastTick),
        since != null,
        Optional.ofNullable(since),
        hangs ? Optional.of("no look has ended since") : Optional.ofNullable(lastFailure),
        offset,
        timers,
        alerts);
  }
}
