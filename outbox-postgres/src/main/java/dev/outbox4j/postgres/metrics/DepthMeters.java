package dev.outbox4j.postgres.metrics;

import java.util.List;
import org.jspecify.annotations.Nullable;

/** Every gauge: its name, unit, tags and meaning. A public contract. */
enum DepthMeters {
  READY("outbox.depth.ready", null, Tag.OF_QUEUE, "Messages that are due and not leased"),
  LEASED("outbox.depth.leased", null, Tag.OF_QUEUE, "Messages that a subscriber holds"),
  LATER("outbox.depth.later", null, Tag.OF_QUEUE, "Messages that are not due yet"),
  OLDEST_READY(
      "outbox.depth.oldest.ready",
      "seconds",
      Tag.OF_QUEUE,
      "How long the oldest message that is due and not leased has been due; 0 if there is none"),
  OLDEST_DUE(
      "outbox.depth.oldest.due",
      "seconds",
      Tag.OF_QUEUE,
      "How long the oldest message has been due, leased or not; 0 if none is due"),
  ASKING(
      "outbox.depth.asking",
      null,
      Tag.OF_TABLE,
      "1 while this process counts the queues of the table, else 0");

  /** The keys of tags. */
  static final class Tag {
    static final String TABLE = "table";
    static final String QUEUE = "queue";

    private static final List<String> OF_TABLE = List.of(TABLE);
    private static final List<String> OF_QUEUE = List.of(TABLE, QUEUE);

    private Tag() {}
  }

  private final String id;
  private final @Nullable String unit;

  @SuppressWarnings("ImmutableEnumChecker") // made by List.of
  private final List<String> tags;

  private final String description;

  DepthMeters(String id, @Nullable String unit, List<String> tags, String description) {
    this.id = id;
    this.unit = unit;
    this.tags = tags;
    this.description = description;
  }

  /** The name by which the registry knows it. */
  String id() {
    return id;
  }

  @Nullable String unit() {
    return unit;
  }

  /** The keys of its tags, in order. */
  List<String> tags() {
    return tags;
  }

  String description() {
    return description;
  }
}
