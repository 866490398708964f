package dev.outbox4j;

import java.time.Duration;
import java.time.Instant;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/**
 * What a subscriber knows of itself, read from memory. Instants are this process's clock.
 *
 * @param subscriber the subscriber's name
 * @param state where it is in its life
 * @param lastClaimAt when a claim last succeeded, or null
 * @param lastErrorAt when the database or the engine last failed, or null
 * @param lastError what failed then, or null
 * @param failing true while the latest claim or write failed; after an outcome that the server
 *     refused, for two leases at most
 * @param listener what is known of the LISTEN connection
 * @param inFlight rows claimed and not settled
 * @param running handlers that run now
 * @param oldestInFlight how long the oldest row in flight has been so; zero if there is none
 * @param deadLettersWaiting terminal failures that the dead-letter table has not taken yet
 */
public record SubscriberHealth(
    String subscriber,
    SubscriberState state,
    @Nullable Instant lastClaimAt,
    @Nullable Instant lastErrorAt,
    @Nullable String lastError,
    boolean failing,
    Listener listener,
    int inFlight,
    int running,
    Duration oldestInFlight,
    int deadLettersWaiting) {

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
   * it has one.
   */
  public boolean healthy() {
    return state == SubscriberState.RUNNING
        && !failing
        && listener != Listener.DOWN
        && deadLettersWaiting == 0;
  }

  /** {@return what failed last, if anything did} */
  public Optional<String> lastFailure() {
    return Optional.ofNullable(lastError);
  }
}
