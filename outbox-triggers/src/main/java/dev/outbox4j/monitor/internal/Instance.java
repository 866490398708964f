package dev.outbox4j.monitor.internal;

import dev.outbox4j.monitor.MonitorStatus;
import java.time.Duration;
import java.time.Instant;
import org.jspecify.annotations.Nullable;

/**
 * An instance as a wake finds it.
 *
 * @param id its id
 * @param type the name of its type
 * @param execution which execution it is
 * @param status where it is
 * @param iteration how many checks were committed
 * @param attempts how many attempts at the next one have failed
 * @param input what it was started with, as JSON
 * @param state what the check before has left, as JSON
 * @param unseen how many events no check has seen
 * @param history how many entries of its history are kept
 * @param createdAt when it was started
 * @param expiresAt when it expires
 * @param firstFailedAt when the first attempt at the next check failed
 * @param readAt when it was read, by the server's clock
 * @param readNanos the same, by this process's monotonic time
 * @param message the message that woke it
 */
public record Instance(
    String id,
    String type,
    long execution,
    MonitorStatus status,
    long iteration,
    int attempts,
    String input,
    @Nullable String state,
    int unseen,
    int history,
    Instant createdAt,
    @Nullable Instant expiresAt,
    @Nullable Instant firstFailedAt,
    Instant readAt,
    long readNanos,
    long message) {

  boolean isExpired() {
    return expiresAt != null && !readAt.isBefore(expiresAt);
  }

  /** Whether it has expired since; if in doubt it has not, as the answer took a while. */
  boolean hasExpiredSince() {
    Duration left = untilExpiry();
    return left != null && (left.isZero() || left.isNegative());
  }

  /** For how long it has not expired yet, by the server's clock; null if it does not expire. */
  @Nullable Duration untilExpiry() {
    return expiresAt == null
        ? null
        : Duration.between(readAt, expiresAt).minusNanos(System.nanoTime() - readNanos);
  }

  /** For how long attempts at the next check have failed. */
  Duration sinceFirstAttempt() {
    Duration running = Duration.ofNanos(System.nanoTime() - readNanos);
    return firstFailedAt == null || firstFailedAt.isAfter(readAt)
        ? running
        : running.plus(Duration.between(firstFailedAt, readAt));
  }

  @Override
  public String toString() {
    return type + "/" + id;
  }
}
