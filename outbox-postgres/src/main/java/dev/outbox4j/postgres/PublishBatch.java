package dev.outbox4j.postgres;

import dev.outbox4j.OutboxException;
import dev.outbox4j.OutboxMessage;
import java.nio.ByteBuffer;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.OptionalLong;
import java.util.Queue;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/**
 * The messages of one call as the arrays of its statement, and the way back from inserted rows to
 * messages. Confined to its call.
 *
 * <p>Messages with a timer id go first, in the order of queue and timer id whatever order they came
 * in: then of two transactions that publish the same ids in one call each, one waits for the other,
 * and never both.
 */
final class PublishBatch {
  /** The most payload bytes of one call: they travel as one value, with some drivers in hex. */
  static final long MAX_BYTES = 256L << 20;

  private final List<OutboxMessage> messages;
  private final int[] order;

  final byte[] payloads;
  final Integer[] firstBytes;
  final Integer[] sizes;
  final String[] queues;

  // what no message has is an empty array: less to send and to unnest
  final @Nullable String[] types;
  final @Nullable String[] orderingKeys;
  final @Nullable String[] timerIds;
  final @Nullable String[] headers;
  final @Nullable Long[] delays;
  final @Nullable String[] deliverAts;

  /** A row that the statement returned; only one that has a timer id tells its queue. */
  record Inserted(long id, @Nullable String queue, @Nullable String timerId) {}

  private record Timer(String queue, String id) {
    static final Comparator<Timer> ORDER =
        Comparator.comparing(Timer::queue).thenComparing(Timer::id);
  }

  PublishBatch(List<OutboxMessage> messages, BodyEncoder encoder) {
    int n = messages.size();
    this.messages = messages;
    this.order = order(messages);
    this.firstBytes = new Integer[n];
    this.sizes = new Integer[n];
    this.queues = new String[n];
    @Nullable String[] types = new String[n];
    @Nullable String[] orderingKeys = new String[n];
    @Nullable String[] timerIds = new String[n];
    @Nullable String[] headers = new String[n];
    @Nullable Long[] delays = new Long[n];
    @Nullable String[] deliverAts = new String[n];
    List<ByteBuffer> contents = new ArrayList<>(n);
    long total = 0;
    for (int place = 0; place < n; place++) {
      OutboxMessage message = messages.get(order[place]);
      BodyEncoder.Encoded encoded = encoder.encode(message);
      contents.add(encoded.payload().buffer());
      firstBytes[place] = (int) total + 1;
      sizes[place] = encoded.payload().size();
      total += encoded.payload().size();
      requireRoom(total, n);
      queues[place] = message.queue();
      types[place] = message.type();
      orderingKeys[place] = message.orderingKey();
      timerIds[place] = message.timerId();
      headers[place] = encoded.headers().equals(BodyEncoder.NO_HEADERS) ? null : encoded.headers();
      delays[place] = PublishTimes.delayMicros(message);
      deliverAts[place] = PublishTimes.deliverAt(message);
    }
    ByteBuffer all = ByteBuffer.allocate((int) total);
    contents.forEach(all::put);
    this.payloads = all.array();
    this.types = emptyIfUnused(types);
    this.orderingKeys = emptyIfUnused(orderingKeys);
    this.timerIds = emptyIfUnused(timerIds);
    this.headers = emptyIfUnused(headers);
    this.delays = emptyIfUnused(delays);
    this.deliverAts = emptyIfUnused(deliverAts);
  }

  /** Unnesting several arrays, PostgreSQL fills up the shorter ones with nulls. */
  private static <T> @Nullable T[] emptyIfUnused(@Nullable T[] values) {
    return Stream.of(values).allMatch(Objects::isNull) ? Arrays.copyOf(values, 0) : values;
  }

  /** Reckons when the first message of each queue is due. */
  FirstDue firstDue() {
    return FirstDue.of(messages);
  }

  /** Whether a message has a timer id. */
  boolean timed() {
    return timerIds.length > 0;
  }

  /** Says what became of each message, in the order they were given. */
  List<Published> results(List<Inserted> rows) {
    Map<Timer, Long> timers = new HashMap<>();
    List<Long> others = new ArrayList<>(rows.size());
    for (Inserted row : rows) {
      if (row.timerId() == null) {
        others.add(row.id());
      } else {
        timers.put(new Timer(Objects.requireNonNull(row.queue()), row.timerId()), row.id());
      }
    }
    Collections.sort(others); // ids grow in the order of insertion; what is returned has no order
    Queue<Long> ids = new ArrayDeque<>(others);
    Published[] results = new Published[messages.size()];
    for (int index : order) {
      Timer timer = timer(messages.get(index));
      Long id = timer == null ? ids.poll() : timers.remove(timer);
      if (id == null && timer == null) {
        throw mismatch(messages.size(), rows.size());
      }
      results[index] = new Published(id == null ? OptionalLong.empty() : OptionalLong.of(id));
    }
    if (!ids.isEmpty() || !timers.isEmpty()) {
      throw mismatch(messages.size(), rows.size());
    }
    return List.of(results);
  }

  private static int[] order(List<OutboxMessage> messages) {
    List<Integer> indexes = new ArrayList<>(messages.size());
    for (int i = 0; i < messages.size(); i++) {
      indexes.add(i);
    }
    if (messages.size() > 1) {
      indexes.sort(
          Comparator.comparing(
              (Integer index) -> timer(messages.get(index)), Comparator.nullsLast(Timer.ORDER)));
    }
    return indexes.stream().mapToInt(Integer::intValue).toArray();
  }

  private static @Nullable Timer timer(OutboxMessage message) {
    String id = message.timerId();
    return id == null ? null : new Timer(message.queue(), id);
  }

  static void requireRoom(long total, int messages) {
    if (total > MAX_BYTES) {
      throw new OutboxException(
          "the payloads of "
              + messages
              + " messages have more than "
              + MAX_BYTES
              + " bytes together, the most that one call may publish; publish fewer at a time");
    }
  }

  static OutboxException mismatch(int messages, int rows) {
    return new OutboxException(
        "publishing "
            + messages
            + " messages gave "
            + rows
            + " rows that do not match them; roll back, and look for a trigger, rule or policy on the table that changes or drops what is inserted");
  }
}
