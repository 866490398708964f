package dev.outbox4j.postgres.internal.publish;

import dev.outbox4j.DedupWindow;
import dev.outbox4j.OutboxMessage;
import dev.outbox4j.Payload;
import org.jspecify.annotations.Nullable;

/** A message as the values of its row. */
record EncodedMessage(
    Payload payload,
    String queue,
    @Nullable String type,
    @Nullable String orderingKey,
    @Nullable String timerId,
    String headers,
    @Nullable Long delayMicros,
    @Nullable String deliverAt,
    @Nullable Long expiryMicros,
    @Nullable String expiresAt,
    @Nullable String dedupKey,
    @Nullable Long inFlightMicros,
    @Nullable Long completedMicros) {

  static EncodedMessage of(OutboxMessage message, BodyEncoder encoder) {
    BodyEncoder.Encoded encoded = encoder.encode(message);
    return new EncodedMessage(
        encoded.payload(),
        message.queue(),
        message.type().orElse(null),
        message.orderingKey().orElse(null),
        message.timerId().orElse(null),
        encoded.headers(),
        PublishTimes.delayMicros(message),
        PublishTimes.deliverAt(message),
        PublishTimes.expiryMicros(message),
        PublishTimes.expiresAt(message),
        message.dedupKey().orElse(null),
        PublishTimes.windowMicros(message, DedupWindow::inFlight),
        PublishTimes.windowMicros(message, DedupWindow::completed));
  }

  /** The delay of a message that has none is zero. */
  long delayOrZero() {
    return delayMicros == null ? 0 : delayMicros;
  }
}
