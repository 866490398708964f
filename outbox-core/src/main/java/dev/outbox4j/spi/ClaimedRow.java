package dev.outbox4j.spi;

import dev.outbox4j.Payload;
import java.time.Duration;
import java.time.Instant;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * A row as a claim returns it.
 *
 * @param lease the fence of every later write
 * @param type the message type, or null
 * @param orderingKey the ordering key, or null
 * @param timerId the dedup key, or null
 * @param payload the bytes
 * @param headers the headers, unmodifiable; may be decoded on first use
 * @param createdAt when the publishing transaction began
 * @param availableAt from when on the row was due, to the microsecond
 * @param deliveries claims, this one included
 * @param attempts handler runs that ended in failure
 * @param sinceFirstAttempt how long ago the first failed attempt was recorded; zero if there was
 *     none
 * @param age how long ago the row was created, when it was claimed, by the server's clock
 */
public record ClaimedRow(
    LeaseRef lease,
    @Nullable String type,
    @Nullable String orderingKey,
    @Nullable String timerId,
    Payload payload,
    Map<String, String> headers,
    Instant createdAt,
    Instant availableAt,
    int deliveries,
    int attempts,
    Duration sinceFirstAttempt,
    Duration age) {

  /** {@return the lease and the counts; neither payload nor headers, which may hold secrets} */
  @Override
  public String toString() {
    return "ClaimedRow[lease="
        + lease
        + ", deliveries="
        + deliveries
        + ", attempts="
        + attempts
        + "]";
  }
}
