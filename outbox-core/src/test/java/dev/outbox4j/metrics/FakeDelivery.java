package dev.outbox4j.metrics;

import dev.outbox4j.testing.UnreadDelivery;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/** A message of which only its queue and type may be read. */
record FakeDelivery(String queue, Optional<String> type) implements UnreadDelivery {
  FakeDelivery(String queue, @Nullable String type) {
    this(queue, Optional.ofNullable(type));
  }
}
