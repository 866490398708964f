package dev.outbox4j;

import java.time.Duration;
import java.time.Instant;
import java.util.Optional;
import java.util.Set;

/**
 * What a subscriber knows of itself, read from memory. Instants are this process's clock.
 *
 * @param subscriber the subscriber's name
 * @param state where it is in its life
 * @param lastClaimAt when a claim last succeeded, if one did
 * @param lastFailureAt when the database or the engine last failed, if it did
 * @param lastFailure what failed then; names the row where one is the cause
 * @param failing true while the latest claim or write failed, or an outcome waits to be written
 *     again because the server refused it or its row is locked, or a statement hangs
 * @param failingSince since when that has been so: when what fails now failed for the first time
 *     since it last worked, or when the statement was sent that hangs; of several the earliest.
 *     Present exactly while {@code failing}
 * @param listener what is known of the LISTEN connection
 * @param inFlight rows claimed and not settled
 * @param running handlers that run now
 * @param oldest the message that has been in flight for longest, if one is; also one whose handler
 *     goes on past the handler timeout, though its row is not in flight any more
 * @param stuckFor how long all workers have been busy with the same messages, so that no other can
 *     begin; zero while a worker is free. Handlers that take long do it as well as ones that hang
 * @param deadLettersWaiting terminal failures that the dead-letter table has not taken yet
 * @param order what is known of ordered queues, if the subscriber was built with {@code ordered()}
 * @param pausedQueues the queues that are paused, if the subscriber was built with {@code
 *     pausable()}; all of them until it has found out
 */
public record SubscriberHealth(
    String subscriber,
    SubscriberState state,
    Optional<Instant> lastClaimAt,
    Optional<Instant> lastFailureAt,
    Optional<String> lastFailure,
    boolean failing,
    Optional<Instant> failingSince,
    Listener listener,
    int inFlight,
    int running,
    Optional<InFlight> oldest,
    Duration stuckFor,
    int deadLettersWaiting,
    Optional<Order> order,
    Optional<Set<String>> pausedQueues) {

  /**
   * A message that is in flight, or whose handler goes on past the handler timeout.
   *
   * @param queue its queue
   * @param id its row's id
   * @param type its type, if it has one
   * @param age how long ago it was claimed
   */
  public record InFlight(String queue, long id, Optional<String> type, Duration age) {}

  /**
   * The share of a subscriber in its ordered queues.
   *
   * @param buckets how many buckets it owns
   * @param blockedKeys how many ordering keys wait for a message that is to be handled again, or
   *     for an ack that cannot be written
   * @param keysOnHold how many ordering keys wait for a dead letter to be resolved
   */
  public record Order(int buckets, int blockedKeys, int keysOnHold) {}

  /** The state of the LISTEN connection. */
  public enum Listener {
    /** The subscriber polls only, by configuration. */
    NONE,
    /** Connected: notifications wake the subscriber. */
    UP,
    /** Not connected: the subscriber polls at the shorter interval meanwhile. */
    DOWN
  }

  /**
   * Tells whether the subscriber runs, its latest statements succeeded, and its listener is up if
   * it has one. Workers that are busy for long do not make it unhealthy: see {@link #stuckFor}.
   */
  public boolean healthy() {
    return state == SubscriberState.RUNNING
        && !failing
        && listener != Listener.DOWN
        && deadLettersWaiting == 0;
  }
}
