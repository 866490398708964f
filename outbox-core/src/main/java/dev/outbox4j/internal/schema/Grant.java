package dev.outbox4j.internal.schema;

import dev.outbox4j.internal.schema.Column.Use;
import java.util.List;
import java.util.stream.Stream;

/**
 * A right that a role needs.
 *
 * @param place on which table
 * @param privilege {@code select}, {@code insert}, {@code update} or {@code delete}
 * @param columns on which columns; empty for the whole table
 */
public record Grant(Place place, String privilege, List<String> columns) {
  /** Who needs rights. */
  public enum Role {
    /** Publishes. */
    PUBLISHER,
    /** Cancels timers. */
    TIMER_CANCELLER,
    /** Replaces timers. */
    TIMER_REPLACER,
    /** Subscribes. */
    SUBSCRIBER,
    /** Looks at the queue and works on dead letters. */
    OPERATOR
  }

  /** Copies the list. */
  public Grant {
    columns = List.copyOf(columns);
  }

  /** Returns what a role needs where no queue is ordered, grouped by table. */
  public static List<Grant> of(Role role) {
    return switch (role) {
      case PUBLISHER ->
          List.of(
              on(Place.OUTBOX, "insert", Use.PUBLISHER_INSERTS),
              on(Place.OUTBOX, "select", Use.PUBLISHER_READS),
              on(Place.SLEEPERS, "select", Use.PUBLISHER_READS));
      case TIMER_CANCELLER ->
          List.of(whole(Place.OUTBOX, "delete"), on(Place.OUTBOX, "select", Use.CANCELLER_READS));
      case TIMER_REPLACER ->
          List.of(
              on(Place.OUTBOX, "update", Use.REPLACER_UPDATES),
              on(Place.OUTBOX, "select", Use.REPLACER_READS));
      case SUBSCRIBER ->
          List.of(
              whole(Place.OUTBOX, "select"),
              on(Place.OUTBOX, "update", Use.SUBSCRIBER_UPDATES),
              whole(Place.OUTBOX, "delete"),
              whole(Place.SLEEPERS, "select"),
              whole(Place.SLEEPERS, "insert"),
              on(Place.SLEEPERS, "update", Use.SUBSCRIBER_UPDATES),
              whole(Place.SLEEPERS, "delete"),
              on(Place.DEAD_LETTERS, "insert", Use.SUBSCRIBER_INSERTS),
              // which ordering keys are on hold
              on(Place.DEAD_LETTERS, "select", Use.SUBSCRIBER_READS),
              // one that was redriven, and has failed again
              on(Place.DEAD_LETTERS, "update", Use.SUBSCRIBER_UPDATES));
      case OPERATOR ->
          List.of(
              whole(Place.OUTBOX, "select"),
              on(Place.OUTBOX, "insert", Use.OPERATOR_INSERTS),
              // the lease of who counts the queues for metrics
              whole(Place.SLEEPERS, "select"),
              on(Place.SLEEPERS, "insert", Use.OPERATOR_INSERTS),
              on(Place.SLEEPERS, "update", Use.OPERATOR_UPDATES),
              whole(Place.DEAD_LETTERS, "select"),
              on(Place.DEAD_LETTERS, "update", Use.OPERATOR_UPDATES),
              whole(Place.DEAD_LETTERS, "delete"),
              whole(Place.DEAD_LETTER_TRIPS, "select"),
              whole(Place.DEAD_LETTER_TRIPS, "insert"),
              whole(Place.DEAD_LETTER_TRIPS, "delete"),
              whole(Place.DEAD_LETTER_AUDIT, "select"),
              whole(Place.DEAD_LETTER_AUDIT, "insert"),
              whole(Place.DEAD_LETTER_AUDIT, "update"));
    };
  }

  /** Returns what a subscriber of ordered queues needs beyond that, grouped by table. */
  public static List<Grant> ofOrderedSubscriber() {
    return List.of(
        whole(Place.BUCKETS, "select"),
        whole(Place.BUCKETS, "update"),
        whole(Place.BUCKET_OWNERS, "select"),
        whole(Place.BUCKET_OWNERS, "insert"),
        whole(Place.BUCKET_OWNERS, "update"),
        whole(Place.BUCKET_OWNERS, "delete"));
  }

  /** Returns what a subscriber of queues that can be paused needs beyond that. */
  public static List<Grant> ofPausableSubscriber() {
    return List.of(whole(Place.PAUSES, "select"));
  }

  /** Returns what an operator who pauses queues needs beyond that. */
  public static List<Grant> ofPausingOperator() {
    return List.of(
        whole(Place.PAUSES, "select"),
        on(Place.PAUSES, "insert", Use.OPERATOR_INSERTS),
        on(Place.PAUSES, "update", Use.OPERATOR_UPDATES));
  }

  /** Returns what a publisher of dedup keys needs beyond that, but for the sequence of the ids. */
  public static List<Grant> ofDedupPublisher() {
    return List.of(
        on(Place.OUTBOX, "insert", Use.DEDUP_INSERTS),
        whole(Place.DEDUP, "select"),
        whole(Place.DEDUP, "insert"),
        on(Place.DEDUP, "update", Use.DEDUP_UPDATES),
        whole(Place.DEDUP, "delete"));
  }

  /** Returns what a subscriber of limited queues needs beyond what each subscriber does. */
  public static List<Grant> ofLimitedSubscriber() {
    return List.of(
        whole(Place.SLOTS, "select"),
        whole(Place.SLOTS, "insert"),
        on(Place.SLOTS, "update", Use.SLOT_UPDATES));
  }

  /** Returns what a node that runs timers needs beyond publishing and subscribing. */
  public static List<Grant> ofTimers() {
    return Stream.of(Place.TIMERS, Place.TIMER_RUNS).flatMap(Grant::all).toList();
  }

  /** Returns what a process needs that takes locks. */
  public static List<Grant> ofLocks() {
    return all(Place.LOCKS).toList();
  }

  /** Returns what a node that runs monitors needs beyond publishing and subscribing. */
  public static List<Grant> ofMonitors() {
    return Stream.of(Place.MONITORS, Place.MONITOR_EVENTS).flatMap(Grant::all).toList();
  }

  /** Returns what a process of a job queue needs beyond publishing and subscribing. */
  public static List<Grant> ofJobs() {
    return Stream.concat(
            Stream.of(on(Place.OUTBOX, "select", Use.JOB_READS)),
            Stream.of(Place.JOBS, Place.JOB_ENDS).flatMap(Grant::all))
        .toList();
  }

  /** Returns what a node that runs table pollers needs, and who controls them. */
  public static List<Grant> ofPollers() {
    return Stream.of(Place.POLLERS, Place.POLLER_HISTORY, Place.POLLER_QUARANTINE)
        .flatMap(Grant::all)
        .toList();
  }

  /** Returns what a service needs in the database of an inbox. */
  public static List<Grant> ofInbox() {
    return all(Place.INBOX).toList();
  }

  private static Stream<Grant> all(Place place) {
    return Stream.of("select", "insert", "update", "delete")
        .map(privilege -> whole(place, privilege));
  }

  private static Grant whole(Place place, String privilege) {
    return new Grant(place, privilege, List.of());
  }

  private static Grant on(Place place, String privilege, Use use) {
    return new Grant(place, privilege, Layout.of(place).columns(use));
  }

  /** The right as SQL takes it, such as {@code update (a, b)}. */
  public String sql() {
    return privilege + (columns.isEmpty() ? "" : " (" + String.join(", ", columns) + ")");
  }
}
