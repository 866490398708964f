package dev.outbox4j.postgres;

import dev.outbox4j.OutboxMessage;
import java.util.Collection;
import java.util.LinkedHashMap;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * When the first message of each queue is due: what a sleeping subscriber's instant of waking is
 * compared with. The arrays of its part of the statement. Confined to its call.
 */
final class FirstDue {
  final String[] queues;
  final @Nullable Long[] delays;
  final @Nullable String[] deliverAts;

  private FirstDue(Map<String, Earliest> earliest) {
    int n = earliest.size();
    this.queues = earliest.keySet().toArray(new String[0]);
    this.delays = new Long[n];
    this.deliverAts = new String[n];
    int place = 0;
    for (Earliest each : earliest.values()) {
      delays[place] = each.delay;
      deliverAts[place] = each.deliverAt == null ? null : PublishTimes.deliverAt(each.deliverAt);
      place++;
    }
  }

  static FirstDue of(Collection<OutboxMessage> messages) {
    Map<String, Earliest> earliest = new LinkedHashMap<>();
    for (OutboxMessage message : messages) {
      earliest.computeIfAbsent(message.queue(), queue -> new Earliest()).add(message);
    }
    return new FirstDue(earliest);
  }

  /** Which of a delay and an instant comes first only the server's clock can tell. */
  private static final class Earliest {
    @Nullable Long delay;
    @Nullable OutboxMessage deliverAt;

    void add(OutboxMessage message) {
      if (message.deliverAt() == null) {
        Long micros = PublishTimes.delayMicros(message);
        long after = micros == null ? 0 : micros;
        delay = delay == null ? after : Math.min(delay, after);
      } else if (deliverAt == null || message.deliverAt().isBefore(deliverAt.deliverAt())) {
        deliverAt = message;
      }
    }
  }
}
