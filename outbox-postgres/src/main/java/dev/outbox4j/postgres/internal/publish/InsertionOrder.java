package dev.outbox4j.postgres.internal.publish;

import dev.outbox4j.OutboxException;
import dev.outbox4j.OutboxMessage;
import dev.outbox4j.internal.publish.OrderingKey;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashSet;
import java.util.List;
import java.util.Objects;
import java.util.Set;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;

/**
 * In which order the messages of a call are inserted, and so get their ids.
 *
 * <p>Timer ids go in their own order, whatever order they came in: then of two transactions that
 * publish the same ids in one call each, one waits for the other, and never both. If they came in
 * that order, as one alone does, the call's order is kept. Otherwise the messages without a timer
 * id go before all timers, or after them if they follow a timer of their ordering key.
 */
final class InsertionOrder {
  /** Where a message goes; timers lie between the two kinds of others. */
  private record Position(int phase, @Nullable TimerKey timer, int place) {
    static final int BEFORE_TIMERS = 0;
    static final int TIMERS = 1;
    static final int AFTER_TIMERS = 2;

    static final Comparator<Position> ORDER =
        Comparator.comparingInt(Position::phase)
            .thenComparing(
                Position::timer, Comparator.nullsFirst(Comparator.<TimerKey>naturalOrder()))
            .thenComparingInt(Position::place);
  }

  private InsertionOrder() {}

  /**
   * Returns the places of the messages in the call, in the order of insertion.
   *
   * @throws OutboxException if the messages of an ordering key have several timer ids
   */
  static int[] of(List<OutboxMessage> messages) {
    OrderingKey.requireOneTimerEach(messages);
    if (timersAscend(messages)) {
      return IntStream.range(0, messages.size()).toArray();
    }
    List<Position> positions = new ArrayList<>(messages.size());
    Set<OrderingKey> keysOfTimers = new HashSet<>();
    for (int place = 0; place < messages.size(); place++) {
      TimerKey timer = TimerKey.of(messages.get(place));
      OrderingKey key = OrderingKey.of(messages.get(place));
      if (timer != null) {
        positions.add(new Position(Position.TIMERS, timer, place));
        if (key != null) {
          keysOfTimers.add(key);
        }
      } else {
        boolean after = key != null && keysOfTimers.contains(key);
        positions.add(
            new Position(after ? Position.AFTER_TIMERS : Position.BEFORE_TIMERS, null, place));
      }
    }
    positions.sort(Position.ORDER);
    return positions.stream().mapToInt(Position::place).toArray();
  }

  private static boolean timersAscend(List<OutboxMessage> messages) {
    List<TimerKey> timers =
        messages.stream()
            .map(TimerKey::of)
            .filter(Objects::nonNull)
            .map(TimerKey.class::cast)
            .toList();
    return IntStream.range(1, timers.size())
        .allMatch(i -> timers.get(i - 1).compareTo(timers.get(i)) <= 0);
  }
}
