package dev.outbox4j.examples.monitor;

import dev.outbox4j.monitor.MonitorInstance;
import dev.outbox4j.monitor.MonitorOutcome;
import dev.outbox4j.monitor.MonitorStatus;
import java.util.Locale;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/** How a watch of the example goes. */
enum Course {
  /** Issues are opened until there are too many. */
  BUSY(MonitorStatus.COMPLETED, MonitorOutcome.CONDITION_MET),
  /** There are never too many. */
  QUIET(MonitorStatus.COMPLETED, MonitorOutcome.EXPIRED),
  /** Somebody ends the watch. */
  CLOSED(MonitorStatus.TERMINATED, null),
  /** There is no such repository. */
  GONE(MonitorStatus.FAILED, null);

  private final MonitorStatus status;
  private final @Nullable MonitorOutcome outcome;

  Course(MonitorStatus status, @Nullable MonitorOutcome outcome) {
    this.status = status;
    this.outcome = outcome;
  }

  /** The id of a watch, which is the name of its repository. */
  String id(int number) {
    return name().toLowerCase(Locale.ROOT) + "-" + number;
  }

  static String repository(String id) {
    return "acme/" + id;
  }

  /** {@return in words what is to become of it} */
  String end() {
    return name().toLowerCase(Locale.ROOT)
        + ": "
        + status.name().toLowerCase(Locale.ROOT)
        + (outcome == null ? "" : ", " + outcome.name().toLowerCase(Locale.ROOT).replace('_', ' '));
  }

  /** {@return whether an instance has ended as it was to} */
  boolean isEndOf(MonitorInstance instance) {
    return instance.status() == status && instance.outcome().equals(Optional.ofNullable(outcome));
  }
}
