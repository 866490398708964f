package dev.outbox4j.internal.publish;

import dev.outbox4j.OutboxException;
import dev.outbox4j.OutboxMessage;
import java.util.Collection;
import java.util.HashMap;
import java.util.Map;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/** What messages of one queue have in common that belong in order. */
public record OrderingKey(String queue, String key) {
  /** Returns that of a message, or null. */
  public static @Nullable OrderingKey of(OutboxMessage message) {
    return message.orderingKey().map(key -> new OrderingKey(message.queue(), key)).orElse(null);
  }

  /**
   * Checks the messages of a call: of two timers of a key, rows could not keep both the order of
   * the call and that of timer ids.
   *
   * @throws OutboxException if the messages of an ordering key have several timer ids
   */
  public static void requireOneTimerEach(Collection<OutboxMessage> call) {
    Map<OrderingKey, OutboxMessage> timers = new HashMap<>();
    for (OutboxMessage message : call) {
      OrderingKey key = message.timerId().isEmpty() ? null : of(message);
      OutboxMessage other = key == null ? null : timers.putIfAbsent(key, message);
      if (other != null && !Objects.equals(other.timerId(), message.timerId())) {
        throw new OutboxException(
            other
                + " and "
                + message
                + " of one call have the same ordering key and different timer ids; rows with timer ids are inserted in the order of these,"
                + " lest two transactions wait for each other, so the two might get row ids against the order of the call;"
                + " publish them in a call each, or give them no common ordering key");
      }
    }
  }
}
