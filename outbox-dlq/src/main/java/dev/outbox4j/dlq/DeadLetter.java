package dev.outbox4j.dlq;

import dev.outbox4j.Payload;
import dev.outbox4j.spi.PayloadCodec;
import dev.outbox4j.spi.UndecodableException;
import java.lang.reflect.Type;
import java.time.Instant;
import java.util.Map;
import java.util.Optional;

/**
 * A dead letter, whole.
 *
 * @param summary what pages show of it, too
 * @param payload the bytes
 * @param headers the headers, unmodifiable
 * @param timerId its timer id, if it has one
 * @param createdAt when it was published
 * @param availableAt when it was due
 * @param firstAttemptAt when it was first tried, if it was
 * @param lastAttemptAt when it was last tried, if it was
 * @param exception the last exception as it was rendered, if there was one
 */
public record DeadLetter(
    DeadLetterSummary summary,
    Payload payload,
    Map<String, String> headers,
    Optional<String> timerId,
    Instant createdAt,
    Instant availableAt,
    Optional<Instant> firstAttemptAt,
    Optional<Instant> lastAttemptAt,
    Optional<String> exception) {

  /**
   * Decodes the payload as a subscriber does.
   *
   * @param codec the subscriber's codec
   * @param type what the handler is registered for
   * @return the body
   * @throws UndecodableException if the bytes are at fault
   * @throws Exception if the codec fails for another reason
   */
  public Object decode(PayloadCodec codec, Type type) throws Exception {
    return codec.decode(payload, headers, type);
  }
}
