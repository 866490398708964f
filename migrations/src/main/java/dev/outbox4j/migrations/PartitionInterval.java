package dev.outbox4j.migrations;

import dev.outbox4j.internal.schema.Period;

/**
 * How much time a partition of dead letters is for. Each begins at midnight in UTC, whatever the
 * time zone of the server, the session or the process. Statements plan for every partition that
 * there is, and lock it: keep fewer than about twenty.
 */
public enum PartitionInterval {
  /** A calendar month. */
  MONTH(Period.MONTH),
  /** A week that begins on Monday. */
  WEEK(Period.WEEK),
  /** A day. */
  DAY(Period.DAY);

  private final Period period;

  PartitionInterval(Period period) {
    this.period = period;
  }

  Period period() {
    return period;
  }
}
