package dev.outbox4j.triggers.metrics;

import java.util.List;
import org.jspecify.annotations.Nullable;

/** Every meter: its name, kind, unit, tags and meaning. A public contract. */
enum MonitorMeters implements Described {
  LOOK(
      "timer",
      "outbox.monitor.look",
      "seconds",
      Tag.OF_APPLICATION,
      "Time of looks at the monitors"),
  LOOK_FAILURES(
      "counter",
      "outbox.monitor.look.failures",
      null,
      Tag.OF_APPLICATION,
      "Looks at the monitors that failed and are tried again"),
  CHECK(
      "timer",
      "outbox.monitor.check",
      "seconds",
      Tag.OF_CHECK,
      "Time in checks; failure if the check threw"),
  ENDED(
      "counter",
      "outbox.monitor.ended",
      null,
      Tag.OF_END,
      "Instances that this node has ended, by their outcome, or by their status if they have none"),
  DROPPED(
      "counter",
      "outbox.monitor.dropped",
      null,
      Tag.OF_REASON,
      "Wakes and results that changed nothing"),
  REPAIRED(
      "counter",
      "outbox.monitor.repaired",
      null,
      Tag.OF_APPLICATION,
      "Instances that had no message any more, and have got one from this node"),
  HEALTHY(
      "gauge",
      "outbox.monitor.healthy",
      null,
      Tag.OF_APPLICATION,
      "1 while the node's health in memory is good, else 0"),
  INSTANCES(
      "gauge",
      "outbox.monitor.instances",
      null,
      Tag.OF_STATUS,
      "Instances on record, by their status, each counted up to 10,000"),
  ALERTS(
      "gauge",
      "outbox.monitor.alerts",
      null,
      Tag.OF_RULE,
      "Instances that somebody is to look at, by the rule, at most 100 in all"),
  OVERDUE(
      "gauge",
      "outbox.monitor.overdue",
      "seconds",
      Tag.OF_APPLICATION,
      "How long the instance has been due that is due for the longest time; 0 if none is overdue");

  /** The keys of tags. */
  static final class Tag {
    static final String APPLICATION = "application";
    static final String TYPE = "type";
    static final String OUTCOME = "outcome";
    static final String REASON = "reason";
    static final String STATUS = "status";
    static final String RULE = "rule";

    private static final List<String> OF_APPLICATION = List.of(APPLICATION);
    private static final List<String> OF_CHECK = List.of(APPLICATION, TYPE, OUTCOME);
    private static final List<String> OF_END = List.of(APPLICATION, TYPE, OUTCOME);
    private static final List<String> OF_REASON = List.of(APPLICATION, REASON);
    private static final List<String> OF_STATUS = List.of(APPLICATION, STATUS);
    private static final List<String> OF_RULE = List.of(APPLICATION, RULE);

    private Tag() {}
  }

  @SuppressWarnings("ImmutableEnumChecker") // its list is a copy
  private final MeterFacts facts;

  MonitorMeters(
      String kind, String id, @Nullable String unit, List<String> tags, String description) {
    this.facts = new MeterFacts(kind, id, unit, tags, description);
  }

  @Override
  public MeterFacts facts() {
    return facts;
  }
}
