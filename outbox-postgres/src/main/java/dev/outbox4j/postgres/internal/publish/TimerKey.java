package dev.outbox4j.postgres.internal.publish;

import dev.outbox4j.OutboxMessage;
import java.util.Comparator;
import org.jspecify.annotations.Nullable;

/** What the unique index on timer ids holds of a row. */
record TimerKey(String queue, String timerId) implements Comparable<TimerKey> {
  private static final Comparator<TimerKey> ORDER =
      Comparator.comparing(TimerKey::queue).thenComparing(TimerKey::timerId);

  /** Returns a message's key, or null if it has no timer id. */
  static @Nullable TimerKey of(OutboxMessage message) {
    return message.timerId().map(id -> new TimerKey(message.queue(), id)).orElse(null);
  }

  @Override
  public int compareTo(TimerKey other) {
    return ORDER.compare(this, other);
  }
}
