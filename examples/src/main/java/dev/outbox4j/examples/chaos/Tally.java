package dev.outbox4j.examples.chaos;

import dev.outbox4j.Delivery;
import dev.outbox4j.SubscriberEvents;
import java.sql.SQLException;
import java.util.Arrays;
import java.util.EnumMap;
import java.util.Locale;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.atomic.LongAdder;
import java.util.stream.Collectors;

/** What a process noticed of faults, counted since its start. Thread-safe. */
final class Tally implements SubscriberEvents {
  /** What is counted. */
  enum Count {
    DEAD_CONNECTIONS,
    STATEMENTS_FAILED,
    MOVES_FAILED,
    LISTENS_LOST,
    ROWS_GIVEN_BACK,
    /** That were made slow by the harness; others may be slow by themselves. */
    HANDLERS_SLOWED,
    /** Outcomes that the fence refused, since the row had gone to another. */
    LATE_WRITES_REFUSED,
    PUBLICATIONS_FAILED,
    REFUSED_AS_READ_ONLY("25006"),
    REFUSED_FOR_WANT_OF_ROOM("53100"),
    /** By the server's time limit, or one of ours. */
    STATEMENTS_CANCELLED("57014");

    private final String sqlState;

    Count() {
      this("");
    }

    Count(String sqlState) {
      this.sqlState = sqlState;
    }

    String label() {
      return name().toLowerCase(Locale.ROOT);
    }
  }

  private static final String MOVE = "dead_letter";

  private final Map<Count, LongAdder> counts =
      Arrays.stream(Count.values())
          .collect(Collectors.toUnmodifiableMap(count -> count, none -> new LongAdder()));

  void add(Count count) {
    add(count, 1);
  }

  private void add(Count count, long number) {
    Objects.requireNonNull(counts.get(count)).add(number);
  }

  @Override
  public void released(String subscriber, int rows) {
    add(Count.ROWS_GIVEN_BACK, rows);
  }

  @Override
  public void leaseLost(String subscriber, Delivery delivery, Phase phase) {
    if (phase == Phase.ACK
        || phase == Phase.RETRY
        || phase == Phase.RESCHEDULE
        || phase == Phase.DEAD_LETTER) {
      add(Count.LATE_WRITES_REFUSED);
    }
  }

  @Override
  public void listenerDisconnected(String subscriber, Throwable cause) {
    add(Count.LISTENS_LOST);
  }

  void publicationFailed(Throwable cause) {
    add(Count.PUBLICATIONS_FAILED);
    addState(cause);
  }

  private void addState(Throwable failure) {
    for (Throwable cause = failure; cause != null; cause = cause.getCause()) {
      if (cause instanceof SQLException refusal) {
        for (Count count : Count.values()) {
          if (count.sqlState.equals(refusal.getSQLState())) {
            add(count);
          }
        }
        return;
      }
    }
  }

  @Override
  public void storeFailed(String subscriber, String operation, Throwable cause) {
    add(Count.STATEMENTS_FAILED);
    addState(cause);
    if (operation.equals(MOVE)) {
      add(Count.MOVES_FAILED);
    }
  }

  /** As {@link #parse} reads it. */
  @Override
  public String toString() {
    return Arrays.stream(Count.values())
        .map(count -> count.name() + "=" + counts.get(count))
        .collect(Collectors.joining(" "));
  }

  static Map<Count, Long> parse(String text) {
    Map<Count, Long> counts = new EnumMap<>(Count.class);
    for (String one : text.strip().split(" ", -1)) {
      int sign = one.indexOf('=');
      counts.put(Count.valueOf(one.substring(0, sign)), Long.valueOf(one.substring(sign + 1)));
    }
    return counts;
  }
}
