package dev.outbox4j.triggers.metrics;

import java.util.List;
import org.jspecify.annotations.Nullable;

/** Every meter: its name, kind, unit, tags and meaning. A public contract. */
enum PollerMeters implements Described {
  TICK(
      "timer",
      "outbox.poller.tick",
      "seconds",
      Tag.OF_OUTCOME,
      "Time of looks at a source, with all batches that they led to"),
  FETCH(
      "timer",
      "outbox.poller.fetch",
      "seconds",
      Tag.OF_OUTCOME,
      "Time in which rows were read from a source"),
  HANDLER("timer", "outbox.poller.handler", "seconds", Tag.OF_OUTCOME, "Time in handlers"),
  COMMIT(
      "timer",
      "outbox.poller.commit",
      "seconds",
      Tag.OF_OUTCOME,
      "Time in which positions were written"),
  BATCH_SIZE(
      "summary",
      "outbox.poller.batch.size",
      null,
      Tag.OF_POLLER,
      "Rows of the batches that handlers were called with"),
  EVENTS(
      "counter",
      "outbox.poller.events",
      null,
      Tag.OF_POLLER,
      "Rows that were handled and are behind the position"),
  DUPLICATES(
      "counter",
      "outbox.poller.duplicates",
      null,
      Tag.OF_POLLER,
      "Rows that a handler was called with again, since they may have been handled before"),
  QUARANTINED(
      "counter", "outbox.poller.quarantined", null, Tag.OF_POLLER, "Rows that went to quarantine"),
  FAILURES(
      "counter",
      "outbox.poller.failures",
      null,
      Tag.OF_FAILURE,
      "Steps that failed, by the class of what was thrown at first"),
  HEALTHY(
      "gauge",
      "outbox.poller.healthy",
      null,
      Tag.OF_APPLICATION,
      "1 while the health of the pollers in memory is good, else 0"),
  ACTIVE(
      "gauge",
      "outbox.poller.active",
      null,
      Tag.OF_POLLER,
      "1 if this node had the poller at its latest look, else 0"),
  PAUSED("gauge", "outbox.poller.paused", null, Tag.OF_POLLER, "1 while it is paused, else 0"),
  FAILING(
      "gauge",
      "outbox.poller.failing",
      "seconds",
      Tag.OF_POLLER,
      "For how long looks have failed; 0 if the latest did not"),
  LAG(
      "gauge",
      "outbox.poller.lag",
      "seconds",
      Tag.OF_POLLER,
      "Time since everything that was committed had been handled; no number until that is known"),
  HELD_BACK(
      "gauge",
      "outbox.poller.held.back",
      "seconds",
      Tag.OF_POLLER,
      "For how long rows wait for transactions that are open"),
  SINCE_SUCCESS(
      "gauge",
      "outbox.poller.since.success",
      "seconds",
      Tag.OF_POLLER,
      "How long ago a look succeeded, of the node that has it as far as this one knows; 0 before the first"),
  STALENESS(
      "gauge",
      "outbox.poller.staleness",
      "seconds",
      Tag.OF_POLLER,
      "How long ago a look of this node ended; 0 before the first"),
  SINCE_RENEWAL(
      "gauge",
      "outbox.poller.since.renewal",
      "seconds",
      Tag.OF_POLLER,
      "How long ago this node renewed the lease that it has, or took it; 0 if it has none");

  /** The keys of tags. */
  static final class Tag {
    static final String APPLICATION = "application";
    static final String POLLER = "poller";
    static final String OUTCOME = "outcome";
    static final String STEP = "step";
    static final String ERROR = "error";

    private static final List<String> OF_APPLICATION = List.of(APPLICATION);
    private static final List<String> OF_POLLER = List.of(APPLICATION, POLLER);
    private static final List<String> OF_OUTCOME = List.of(APPLICATION, POLLER, OUTCOME);
    private static final List<String> OF_FAILURE = List.of(APPLICATION, POLLER, STEP, ERROR);

    private Tag() {}
  }

  @SuppressWarnings("ImmutableEnumChecker") // its list is a copy
  private final MeterFacts facts;

  PollerMeters(
      String kind, String id, @Nullable String unit, List<String> tags, String description) {
    this.facts = new MeterFacts(kind, id, unit, tags, description);
  }

  @Override
  public MeterFacts facts() {
    return facts;
  }
}
