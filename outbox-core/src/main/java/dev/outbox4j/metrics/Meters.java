package dev.outbox4j.metrics;

import java.util.List;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/** Every meter: its name, kind, unit, tags and meaning. A public contract. */
enum Meters {
  ACKED(Kind.COUNTER, "outbox.acked", Tag.MESSAGE, "Messages done, their rows deleted"),
  NACKED_RETRIED(
      Kind.COUNTER, "outbox.nacked.retried", Tag.MESSAGE, "Failed attempts that are due again"),
  NACKED_TERMINAL(
      Kind.COUNTER,
      "outbox.nacked.terminal",
      Tag.message(Tag.REASON),
      "Messages that failed for good, their rows gone from the outbox"),
  DLQ_WRITTEN(
      Kind.COUNTER,
      "outbox.dlq.written",
      Tag.message(Tag.REASON),
      "Messages moved to the dead-letter table"),
  RESCHEDULED(
      Kind.COUNTER,
      "outbox.rescheduled",
      Tag.MESSAGE,
      "Messages that did not fail and are due again"),
  LEASE_LOST(
      Kind.COUNTER,
      "outbox.lease.lost",
      Tag.PHASES,
      "Leases found to be another owner's, by the step that found it"),
  OUTCOME_UNKNOWN(
      Kind.COUNTER,
      "outbox.outcome.unknown",
      Tag.PHASES,
      "Repeated writes that did not find the row after the first answer was lost"),
  HANDLER_TIMEOUT(
      Kind.COUNTER,
      "outbox.handler.timeout",
      Tag.MESSAGE,
      "Handlers interrupted because they ran past their timeout"),
  HANDLER(
      Kind.TIMER,
      "outbox.handler",
      Tag.message(Tag.OUTCOME),
      "Time in handlers; failure if the handler threw"),
  DISPATCH_AGE(
      Kind.TIMER,
      "outbox.dispatch.age",
      Tag.MESSAGE,
      "Time from a message's creation to the start of its handler"),

  CLAIM(Kind.TIMER, "outbox.claim", Tag.SUBSCRIBER_ONLY, "Time of claim statements that succeeded"),
  CLAIM_EMPTY(Kind.COUNTER, "outbox.claim.empty", Tag.SUBSCRIBER_ONLY, "Claims that found no row"),
  CLAIM_BATCH(
      Kind.SUMMARY,
      "outbox.claim.batch",
      Tag.SUBSCRIBER_ONLY,
      "Rows per claim, of claims that found any"),
  RENEWED(Kind.COUNTER, "outbox.renewed", Tag.SUBSCRIBER_ONLY, "Leases extended"),
  RELEASED(Kind.COUNTER, "outbox.released", Tag.SUBSCRIBER_ONLY, "Leases given back unused"),
  STORE_FAILURES(
      Kind.COUNTER,
      "outbox.store.failures",
      List.of(Tag.SUBSCRIBER, Tag.OPERATION),
      "Statements that failed and are tried again, by their verb"),
  DRAIN_TIMEOUT(
      Kind.COUNTER,
      "outbox.drain.timeout",
      Tag.SUBSCRIBER_ONLY,
      "Drains that ran past their timeout"),
  LISTENER_CONNECTS(
      Kind.COUNTER,
      "outbox.listener.connects",
      Tag.SUBSCRIBER_ONLY,
      "Times that LISTEN came into force, the first included"),
  LISTENER_RECONNECTS(
      Kind.COUNTER,
      "outbox.listener.reconnects",
      Tag.SUBSCRIBER_ONLY,
      "Times that LISTEN came into force again"),
  LISTENER_DISCONNECTS(
      Kind.COUNTER,
      "outbox.listener.disconnects",
      Tag.SUBSCRIBER_ONLY,
      "Times that LISTEN could not be set up or was lost"),

  LISTENER_UP(
      Kind.GAUGE,
      "outbox.listener.up",
      Tag.SUBSCRIBER_ONLY,
      "1 while LISTEN is in force, 0 while it is not"),
  HEALTHY(
      Kind.GAUGE,
      "outbox.healthy",
      Tag.SUBSCRIBER_ONLY,
      "1 while the subscriber's health in memory is good, else 0"),
  IN_FLIGHT(Kind.GAUGE, "outbox.inflight", Tag.SUBSCRIBER_ONLY, "Rows claimed and not settled"),
  RUNNING(Kind.GAUGE, "outbox.running", Tag.SUBSCRIBER_ONLY, "Handlers that run now"),
  OLDEST_IN_FLIGHT(
      Kind.TIME_GAUGE,
      "outbox.inflight.oldest",
      Tag.SUBSCRIBER_ONLY,
      "How long the oldest row in flight has been so; 0 if there is none"),
  STUCK(
      Kind.TIME_GAUGE,
      "outbox.stuck",
      Tag.SUBSCRIBER_ONLY,
      "How long all workers have been busy with the same messages; 0 while one is free"),
  DLQ_WAITING(
      Kind.GAUGE,
      "outbox.dlq.waiting",
      Tag.SUBSCRIBER_ONLY,
      "Terminal failures that the dead-letter table has not taken yet"),
  ORDER_BUCKETS(
      Kind.GAUGE, "outbox.order.buckets", Tag.SUBSCRIBER_ONLY, "Buckets of ordered queues owned"),
  ORDER_BLOCKED_KEYS(
      Kind.GAUGE,
      "outbox.order.blocked.keys",
      Tag.SUBSCRIBER_ONLY,
      "Ordering keys that wait for a message to be handled again, or for an ack to be written"),
  ORDER_KEYS_ON_HOLD(
      Kind.GAUGE,
      "outbox.order.keys.on.hold",
      Tag.SUBSCRIBER_ONLY,
      "Ordering keys that wait for a dead letter to be resolved"),
  PAUSED_QUEUES(
      Kind.GAUGE,
      "outbox.paused.queues",
      Tag.SUBSCRIBER_ONLY,
      "Queues of which nothing begins, since they are paused");

  /** What a meter measures with. */
  enum Kind {
    COUNTER("counter", null),
    TIMER("timer", "seconds"),
    SUMMARY("summary", "rows"),
    GAUGE("gauge", null),
    TIME_GAUGE("gauge", "seconds");

    private final String word;
    private final @Nullable String unit;

    Kind(String word, @Nullable String unit) {
      this.word = word;
      this.unit = unit;
    }

    String word() {
      return word;
    }

    @Nullable String unit() {
      return unit;
    }
  }

  /** The keys of tags. */
  static final class Tag {
    static final String SUBSCRIBER = "subscriber";
    static final String QUEUE = "queue";
    static final String TYPE = "type";
    static final String REASON = "reason";
    static final String PHASE = "phase";
    static final String OUTCOME = "outcome";
    static final String OPERATION = "operation";

    private static final List<String> SUBSCRIBER_ONLY = List.of(SUBSCRIBER);
    private static final List<String> PHASES = List.of(SUBSCRIBER, PHASE);
    private static final List<String> MESSAGE = List.of(SUBSCRIBER, QUEUE, TYPE);

    private Tag() {}

    private static List<String> message(String further) {
      return Stream.concat(MESSAGE.stream(), Stream.of(further)).toList();
    }
  }

  private final Kind kind;
  private final String id;

  @SuppressWarnings("ImmutableEnumChecker") // made by List.of or toList
  private final List<String> tags;

  private final String description;

  Meters(Kind kind, String id, List<String> tags, String description) {
    this.kind = kind;
    this.id = id;
    this.tags = tags;
    this.description = description;
  }

  Kind kind() {
    return kind;
  }

  /** The name by which the registry knows it. */
  String id() {
    return id;
  }

  /** The keys of its tags, in order. */
  List<String> tags() {
    return tags;
  }

  String description() {
    return description;
  }
}
