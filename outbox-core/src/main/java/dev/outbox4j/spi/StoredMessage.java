package dev.outbox4j.spi;

import dev.outbox4j.Payload;
import java.time.Instant;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * A message as it is stored.
 *
 * @param type the message type, or null
 * @param orderingKey the ordering key, or null
 * @param timerId the dedup key, or null
 * @param payload the bytes
 * @param headers the headers, unmodifiable; may be decoded on first use
 * @param createdAt when the publishing transaction began
 * @param availableAt from when on the row was due, to the microsecond
 * @param expiresAt from when on no handler is to be called with it; null if it does not expire
 */
public record StoredMessage(
    @Nullable String type,
    @Nullable String orderingKey,
    @Nullable String timerId,
    Payload payload,
    Map<String, String> headers,
    Instant createdAt,
    Instant availableAt,
    @Nullable Instant expiresAt) {

  /** {@return the type alone; neither payload nor headers nor keys, which may hold secrets} */
  @Override
  public String toString() {
    return "StoredMessage[type=" + type + "]";
  }
}
