package dev.outbox4j.triggers.metrics;

import dev.outbox4j.timer.TimerStatus;

/** What the gauges of a value of the tag {@code timer} show. Times are in nanoseconds. */
record Shown(
    double overdue, double sinceSuccess, long waiting, long begun, long notRun, long paused) {
  static Shown of(TimerStatus status) {
    return new Shown(
        status.overdue().toNanos(),
        status.sinceSuccess().toNanos(),
        status.waiting(),
        status.begun(),
        status.notRun(),
        status.pause().isPresent() ? 1 : 0);
  }

  /** Counts add up, and times are the longest. */
  Shown with(Shown more) {
    return new Shown(
        Math.max(overdue, more.overdue),
        Math.max(sinceSuccess, more.sinceSuccess),
        waiting + more.waiting,
        begun + more.begun,
        notRun + more.notRun,
        paused + more.paused);
  }
}
