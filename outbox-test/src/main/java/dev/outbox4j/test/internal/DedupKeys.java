package dev.outbox4j.test.internal;

import dev.outbox4j.DedupWindow;
import dev.outbox4j.OutboxMessage;
import java.time.Duration;
import java.time.Instant;
import java.util.HashMap;
import java.util.Map;
import java.util.function.LongPredicate;

/** The dedup keys that were published, each with the message that has it. Guarded by its store. */
final class DedupKeys {
  private record Key(String queue, String key) {}

  private record Holder(long id, Instant publishedAt) {}

  private final Map<Key, Holder> holders = new HashMap<>();

  /**
   * Takes the key of a message that is to be published; false if its window is not over.
   *
   * @param id the id that the message gets
   * @param inFlight tells whether there is a row of an id
   */
  boolean take(OutboxMessage message, long id, Instant now, LongPredicate inFlight) {
    Key key = new Key(message.queue(), message.dedupKey().orElseThrow());
    Holder holder = holders.get(key);
    if (holder != null) {
      DedupWindow window = message.dedupWindow().orElseThrow();
      Duration time = inFlight.test(holder.id()) ? window.inFlight() : window.completed();
      if (holder.publishedAt().plus(time).isAfter(now)) {
        return false;
      }
    }
    holders.put(key, new Holder(id, now));
    return true;
  }
}
