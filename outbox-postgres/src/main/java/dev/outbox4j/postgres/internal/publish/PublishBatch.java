package dev.outbox4j.postgres.internal.publish;

import dev.outbox4j.IfLive;
import dev.outbox4j.OutboxException;
import dev.outbox4j.OutboxMessage;
import dev.outbox4j.internal.publish.Replacing;
import dev.outbox4j.postgres.Published;
import java.nio.ByteBuffer;
import java.time.Instant;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.OptionalLong;
import java.util.Queue;
import java.util.Set;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;

/**
 * The messages of one call as the arrays of its statement, and the way back from inserted rows to
 * messages. Confined to its call.
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
  final @Nullable Long[] expiries;
  final @Nullable String[] expiresAts;
  final @Nullable String[] dedupKeys;
  final @Nullable Long[] inFlight;
  final @Nullable Long[] completed;

  // of messages that take the place of live ones
  final String[] replacedQueues;
  final String[] replacedTimers;

  /**
   * A row that the statement returned; only one that has a timer id tells its queue.
   *
   * @param place its place in the arrays, from 1; 0 if the statement does not tell
   */
  record Inserted(long id, @Nullable String queue, @Nullable String timerId, int place) {}

  PublishBatch(List<OutboxMessage> messages, BodyEncoder encoder) {
    Set<Integer> leftOut = Replacing.leftOut(messages);
    this.messages = messages;
    this.order =
        Arrays.stream(InsertionOrder.of(messages))
            .filter(index -> !leftOut.contains(index))
            .toArray();
    List<TimerKey> replacing = replacing(messages, order);
    this.replacedQueues = replacing.stream().map(TimerKey::queue).toArray(String[]::new);
    this.replacedTimers = replacing.stream().map(TimerKey::timerId).toArray(String[]::new);
    int n = order.length;
    List<EncodedMessage> rows = new ArrayList<>(n);
    this.firstBytes = new Integer[n];
    this.sizes = new Integer[n];
    this.queues = new String[n];
    long total = 0;
    for (int place = 0; place < n; place++) {
      EncodedMessage row = EncodedMessage.of(messages.get(order[place]), encoder);
      rows.add(row);
      firstBytes[place] = (int) total + 1;
      sizes[place] = row.payload().size();
      queues[place] = row.queue();
      total += row.payload().size();
      requireRoom(total, n);
    }
    ByteBuffer all = ByteBuffer.allocate((int) total);
    rows.forEach(row -> all.put(row.payload().buffer()));
    this.payloads = all.array();
    this.types = texts(rows, EncodedMessage::type);
    this.orderingKeys = texts(rows, EncodedMessage::orderingKey);
    this.timerIds = texts(rows, EncodedMessage::timerId);
    this.headers =
        texts(rows, row -> row.headers().equals(HeaderArray.EMPTY) ? null : row.headers());
    this.delays = column(rows, EncodedMessage::delayMicros, new Long[0]);
    this.deliverAts = texts(rows, EncodedMessage::deliverAt);
    this.expiries = column(rows, EncodedMessage::expiryMicros, new Long[0]);
    this.expiresAts = texts(rows, EncodedMessage::expiresAt);
    this.dedupKeys = texts(rows, EncodedMessage::dedupKey);
    this.inFlight = column(rows, EncodedMessage::inFlightMicros, new Long[0]);
    this.completed = column(rows, EncodedMessage::completedMicros, new Long[0]);
  }

  private static List<TimerKey> replacing(List<OutboxMessage> messages, int[] order) {
    List<TimerKey> keys = new ArrayList<>(0);
    for (int index : order) {
      TimerKey timer = TimerKey.of(messages.get(index));
      if (timer != null && messages.get(index).ifLive() == IfLive.REPLACE) {
        keys.add(timer);
      }
    }
    return keys;
  }

  private static @Nullable String[] texts(
      List<EncodedMessage> rows, Function<EncodedMessage, @Nullable String> value) {
    return column(rows, value, new String[0]);
  }

  /** Unnesting several arrays, PostgreSQL fills up the shorter ones with nulls. */
  private static <T> @Nullable T[] column(
      List<EncodedMessage> rows, Function<EncodedMessage, @Nullable T> value, T[] empty) {
    List<@Nullable T> values = new ArrayList<>(rows.size());
    rows.forEach(row -> values.add(value.apply(row)));
    return values.stream().allMatch(Objects::isNull) ? empty : values.toArray(empty);
  }

  /** Whether a message has a timer id. */
  boolean hasTimers() {
    return timerIds.length > 0;
  }

  /** Whether a message is to take the place of a live one. */
  boolean replacesTimers() {
    return replacedTimers.length > 0;
  }

  /** Whether a message has a dedup key: then its statement tells the places of its rows. */
  boolean hasDedupKeys() {
    return dedupKeys.length > 0;
  }

  /** Computes when the first message of each queue is due. */
  FirstDue firstDue() {
    Map<String, Earliest> earliest = new LinkedHashMap<>();
    for (OutboxMessage message : messages) {
      earliest.computeIfAbsent(message.queue(), queue -> new Earliest()).add(message);
    }
    return new FirstDue(earliest);
  }

  /**
   * When the first message of each queue is due: what is compared with the instant at which a
   * sleeping subscriber wakes. The arrays of its part of the statement.
   */
  static final class FirstDue {
    final String[] queues;
    final @Nullable Long[] delays;
    final @Nullable String[] deliverAts;

    private FirstDue(Map<String, Earliest> earliest) {
      this.queues = earliest.keySet().toArray(new String[0]);
      this.delays = earliest.values().stream().map(each -> each.delay).toArray(Long[]::new);
      this.deliverAts = earliest.values().stream().map(Earliest::instant).toArray(String[]::new);
    }
  }

  /** Which of a delay and an instant comes first only the server's clock can tell. */
  private static final class Earliest {
    private @Nullable Long delay;
    private @Nullable OutboxMessage deliverAt;
    private @Nullable Instant earliest;

    void add(OutboxMessage message) {
      Instant at = message.deliverAt().orElse(null);
      if (at == null) {
        Long micros = PublishTimes.delayMicros(message);
        long after = micros == null ? 0 : micros;
        delay = delay == null ? after : Math.min(delay, after);
      } else if (earliest == null || at.isBefore(earliest)) {
        deliverAt = message;
        earliest = at;
      }
    }

    @Nullable String instant() {
      return deliverAt == null ? null : PublishTimes.deliverAt(deliverAt);
    }
  }

  /** Says what became of each message, in the order they were given. */
  List<Published> results(List<Inserted> rows) {
    return hasDedupKeys() ? byPlace(rows) : byTimer(rows);
  }

  private List<Published> byPlace(List<Inserted> rows) {
    Published[] results = new Published[messages.size()];
    Arrays.fill(results, new Published(OptionalLong.empty()));
    for (Inserted row : rows) {
      results[order[row.place() - 1]] = new Published(OptionalLong.of(row.id()));
    }
    for (int i = 0; i < results.length; i++) {
      OutboxMessage message = messages.get(i);
      if (results[i].deduplicated()
          && message.timerId().isEmpty()
          && message.dedupKey().isEmpty()) {
        throw mismatch(messages.size(), rows.size());
      }
    }
    return List.of(results);
  }

  private List<Published> byTimer(List<Inserted> rows) {
    Map<TimerKey, Long> timers = new HashMap<>();
    List<Long> others = new ArrayList<>(rows.size());
    for (Inserted row : rows) {
      if (row.timerId() == null) {
        others.add(row.id());
      } else {
        timers.put(new TimerKey(Objects.requireNonNull(row.queue()), row.timerId()), row.id());
      }
    }
    Collections.sort(others); // ids grow in the order of insertion; what is returned has no order
    Queue<Long> ids = new ArrayDeque<>(others);
    Published[] results = new Published[messages.size()];
    Arrays.fill(results, new Published(OptionalLong.empty()));
    for (int index : order) {
      TimerKey timer = TimerKey.of(messages.get(index));
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

  /** Says what became of a message without a timer id that was published alone. */
  static Published single(List<Long> ids) {
    if (ids.size() != 1) {
      throw mismatch(1, ids.size());
    }
    return new Published(OptionalLong.of(ids.get(0)));
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

  private static OutboxException mismatch(int messages, int rows) {
    return new OutboxException(
        "publishing "
            + messages
            + " messages gave "
            + rows
            + " rows that do not match them; roll back, and look for a trigger, rule or policy on the table that changes or drops what is inserted");
  }
}
