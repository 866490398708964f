package dev.outbox4j.postgres;

import dev.outbox4j.OutboxMessage;
import dev.outbox4j.Payload;
import java.util.List;
import java.util.OptionalLong;
import org.jspecify.annotations.Nullable;

/** A message without a timer id that is published alone, as the values of its statement. */
record SingleMessage(
    Payload payload,
    String queue,
    @Nullable String type,
    @Nullable String orderingKey,
    String headers,
    @Nullable String deliverAt,
    long delayMicros) {

  /** Whether this is all that there is to publish. */
  static boolean is(List<OutboxMessage> messages) {
    return messages.size() == 1 && messages.get(0).timerId() == null;
  }

  static SingleMessage of(OutboxMessage message, BodyEncoder encoder) {
    BodyEncoder.Encoded encoded = encoder.encode(message);
    PublishBatch.requireRoom(encoded.payload().size(), 1);
    Long delay = PublishTimes.delayMicros(message);
    return new SingleMessage(
        encoded.payload(),
        message.queue(),
        message.type(),
        message.orderingKey(),
        encoded.headers(),
        PublishTimes.deliverAt(message),
        delay == null ? 0 : delay);
  }

  /** Says what became of it. */
  static Published result(List<Long> ids) {
    if (ids.size() != 1) {
      throw PublishBatch.mismatch(1, ids.size());
    }
    return new Published(OptionalLong.of(ids.get(0)));
  }
}
