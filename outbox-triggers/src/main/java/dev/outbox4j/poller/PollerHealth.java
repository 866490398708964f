package dev.outbox4j.poller;

import java.time.Duration;
import java.time.Instant;
import java.util.List;
import java.util.Optional;

/**
 * What a node knows of one poller, from memory. Instants are this process's clock, where nothing
 * else is said.
 *
 * @param name its name
 * @param state what this node does with it
 * @param lastTick when a look last ended, however
 * @param lastSuccess when a look last succeeded, as one that finds nothing does; by the record
 *     while this node has not got the lease, as while another one has it, it is paused, or it waits
 *     after a failure
 * @param failingSince since when looks have failed, on whichever node, by the server's clock where
 *     it is on record; present exactly while the latest failed
 * @param failure at which step
 * @param reason why
 * @param failures how many looks in a row failed
 * @param lag how old what is handled is: the time since everything that was committed had been
 *     handled; empty while that is not known, as before the first look
 * @param sinceRenewal how long ago this node renewed the lease that it has, or took it; empty while
 *     it has none
 * @param heldBack why rows wait, if they do
 * @param position where it is, when it was last seen
 * @param warnings what was found at the source that costs time, such as a missing index, or may
 *     cost rows, such as a clock that was set back
 */
public record PollerHealth(
    String name,
    State state,
    Optional<Instant> lastTick,
    Optional<Instant> lastSuccess,
    Optional<Instant> failingSince,
    Optional<PollerFailure> failure,
    Optional<String> reason,
    int failures,
    Optional<Duration> lag,
    Optional<Duration> sinceRenewal,
    Optional<HeldBack> heldBack,
    Optional<Position> position,
    List<String> warnings) {

  /** Copies the list. */
  public PollerHealth {
    warnings = List.copyOf(warnings);
  }

  /** What a node does with a poller. */
  public enum State {
    /** It has not looked yet. */
    NEW,
    /** It had the poller at the latest look. */
    ACTIVE,
    /** Another node had it. */
    STANDBY,
    /** It is paused. */
    PAUSED,
    /** It has come to its end. */
    FINISHED,
    /** It was stopped here. */
    STOPPED
  }

  /** {@return whether there was a look and the latest did not fail} */
  public boolean healthy() {
    return lastTick.isPresent() && failingSince.isEmpty();
  }
}
