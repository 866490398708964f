package dev.outbox4j.triggers.metrics;

import java.util.List;
import org.jspecify.annotations.Nullable;

/** Every meter: its name, kind, unit, tags and meaning. A public contract. */
enum TimerMeters implements Described {
  TICK("timer", "outbox.timer.tick", "seconds", Tag.OF_APPLICATION, "Time of looks at the timers"),
  TICK_FAILURES(
      "counter",
      "outbox.timer.tick.failures",
      null,
      Tag.OF_APPLICATION,
      "Looks at the timers that failed and are tried again"),
  LATENESS(
      "timer",
      "outbox.timer.lateness",
      "seconds",
      Tag.OF_TIMER,
      "Time from an instant to the start of its run's first attempt"),
  RUN(
      "timer",
      "outbox.timer.run",
      "seconds",
      Tag.OF_RUN,
      "Time in handlers; failure if the handler threw"),
  SKIPPED(
      "counter",
      "outbox.timer.skipped",
      null,
      Tag.OF_TIMER,
      "Runs that this node skipped, since another run lasted"),
  TERMINATED(
      "counter",
      "outbox.timer.terminated",
      null,
      Tag.OF_TIMER,
      "Runs that this node fenced off, to begin another in their place"),
  HEALTHY(
      "gauge",
      "outbox.timer.healthy",
      null,
      Tag.OF_APPLICATION,
      "1 while the node's health in memory is good, else 0"),
  CLOCK_OFFSET(
      "gauge",
      "outbox.timer.clock.offset",
      "seconds",
      Tag.OF_APPLICATION,
      "By how much this process's clock is ahead of the server's; below zero if it is behind"),
  ALERTS(
      "gauge",
      "outbox.timer.alerts",
      null,
      Tag.OF_RULE,
      "Timers that somebody is to look at, by the rule"),
  OVERDUE(
      "gauge",
      "outbox.timer.overdue",
      "seconds",
      Tag.OF_TIMER,
      "How long it has been due and no node has decided on it; 0 if it is not due"),
  SINCE_SUCCESS(
      "gauge",
      "outbox.timer.since.success",
      "seconds",
      Tag.OF_TIMER,
      "How long ago a run succeeded; since it was put on record if none has"),
  WAITING("gauge", "outbox.timer.waiting", null, Tag.OF_TIMER, "Runs that wait for others to end"),
  BEGUN("gauge", "outbox.timer.begun", null, Tag.OF_TIMER, "Runs that have a message"),
  NOT_RUN("gauge", "outbox.timer.not.run", null, Tag.OF_TIMER, "Missed instants without a run"),
  PAUSED("gauge", "outbox.timer.paused", null, Tag.OF_TIMER, "1 while it is paused, else 0");

  /** The keys of tags. */
  static final class Tag {
    static final String APPLICATION = "application";
    static final String TIMER = "timer";
    static final String RULE = "rule";
    static final String OUTCOME = "outcome";

    private static final List<String> OF_APPLICATION = List.of(APPLICATION);
    private static final List<String> OF_TIMER = List.of(APPLICATION, TIMER);
    private static final List<String> OF_RULE = List.of(APPLICATION, RULE);
    private static final List<String> OF_RUN = List.of(APPLICATION, TIMER, OUTCOME);

    private Tag() {}
  }

  @SuppressWarnings("ImmutableEnumChecker") // its list is a copy
  private final MeterFacts facts;

  TimerMeters(
      String kind, String id, @Nullable String unit, List<String> tags, String description) {
    this.facts = new MeterFacts(kind, id, unit, tags, description);
  }

  @Override
  public MeterFacts facts() {
    return facts;
  }
}
