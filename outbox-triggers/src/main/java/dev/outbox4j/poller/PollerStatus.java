package dev.outbox4j.poller;

import java.time.Duration;
import java.time.Instant;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalDouble;

/**
 * A poller as it is on record. All instants are the clock of the outbox's database, where nothing
 * else is said.
 *
 * @param name its name
 * @param version how often somebody has done something to it, from 1; verbs can be told which
 *     version they expect
 * @param fingerprint the parts of its definition, and what was found of its source; of values of
 *     the condition a hash
 * @param position where it is
 * @param positionAt when that was written; empty before the first batch
 * @param holder the node that has it, if one has
 * @param leaseUntil until when, unless that is renewed
 * @param token the fencing token of the latest lease
 * @param pause who has paused it, if it is paused
 * @param failingSince since when looks have failed; empty if the latest succeeded
 * @param failure at which step the latest look failed
 * @param reason why
 * @param failures how many looks in a row have failed
 * @param retryAt when the next attempt is made after a handler that threw
 * @param failingUntil the position behind the batch that fails, if one does; {@link
 *     PollerControl#skip} moves there
 * @param lastTick when a look last ended
 * @param lastSuccess when a look last succeeded
 * @param lag how old what is handled is: the time since everything that was committed had been
 *     handled; empty while that is not known
 * @param heldBack why rows wait, in words, if they do
 * @param rows how many rows were handled
 * @param batches how many batches these were
 * @param quarantined how many rows are in quarantine
 * @param end where it ends, if it does and that is known
 * @param finishedAt when it came to its end
 * @param progress how far it has come to its end, from 0 to 1, if the cursor is a number or a time
 * @param createdAt when it was put on record
 */
public record PollerStatus(
    String name,
    long version,
    Map<String, String> fingerprint,
    Position position,
    Optional<Instant> positionAt,
    Optional<String> holder,
    Optional<Instant> leaseUntil,
    long token,
    Optional<Pause> pause,
    Optional<Instant> failingSince,
    Optional<PollerFailure> failure,
    Optional<String> reason,
    int failures,
    Optional<Instant> retryAt,
    Optional<Position> failingUntil,
    Optional<Instant> lastTick,
    Optional<Instant> lastSuccess,
    Optional<Duration> lag,
    Optional<String> heldBack,
    long rows,
    long batches,
    long quarantined,
    Optional<Position> end,
    Optional<Instant> finishedAt,
    OptionalDouble progress,
    Instant createdAt) {

  /** Copies the map. */
  public PollerStatus {
    fingerprint = Map.copyOf(fingerprint);
  }

  /**
   * Who has paused it.
   *
   * @param at when
   * @param by who
   * @param reason why
   */
  public record Pause(Instant at, String by, String reason) {}
}
