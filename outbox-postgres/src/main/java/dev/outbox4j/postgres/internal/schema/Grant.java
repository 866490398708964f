package dev.outbox4j.postgres.internal.schema;

import dev.outbox4j.postgres.OutboxRole;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;

/** A right that a role needs; columns are empty if it is needed for the whole table. */
record Grant(Place place, String privilege, List<String> columns) {
  /** Where. */
  enum Place {
    OUTBOX,
    SLEEPERS,
    DEAD_LETTERS
  }

  private static final List<String> MESSAGE =
      List.of("queue", "type", "ordering_key", "payload", "headers", "available_at", "timer_id");

  /** What claims and outcomes write; a message itself is never changed. */
  private static final List<String> DELIVERY =
      List.of(
          "available_at",
          "lease_until",
          "lease_token",
          "leased_by",
          "deliveries_count",
          "attempts_count",
          "first_attempt_at",
          "last_attempt_at",
          "last_error");

  private static final List<String> DEAD_LETTER =
      List.of(
          "original_id",
          "queue",
          "type",
          "ordering_key",
          "payload",
          "headers",
          "deliveries_count",
          "attempts_count",
          "created_at",
          "failure_reason",
          "last_exception",
          "timer_id");

  private static final List<String> REDRIVE = List.of("redriven_at", "redriven_by", "redriven_id");

  static List<Grant> of(Set<OutboxRole> roles) {
    List<Grant> grants = new ArrayList<>();
    if (roles.contains(OutboxRole.PUBLISHER)) {
      grants.add(new Grant(Place.OUTBOX, "insert", MESSAGE));
      grants.add(
          new Grant(Place.OUTBOX, "select", List.of("id", "queue", "timer_id", "available_at")));
      grants.add(new Grant(Place.SLEEPERS, "select", List.of("queue", "wake_at")));
    }
    if (roles.contains(OutboxRole.SUBSCRIBER)) {
      grants.add(whole(Place.OUTBOX, "select"));
      grants.add(new Grant(Place.OUTBOX, "update", DELIVERY));
      grants.add(whole(Place.OUTBOX, "delete"));
      grants.add(whole(Place.SLEEPERS, "select"));
      grants.add(whole(Place.SLEEPERS, "insert"));
      grants.add(new Grant(Place.SLEEPERS, "update", List.of("wake_at")));
      grants.add(whole(Place.SLEEPERS, "delete"));
      grants.add(new Grant(Place.DEAD_LETTERS, "insert", DEAD_LETTER));
    }
    if (roles.contains(OutboxRole.OPERATOR)) {
      grants.add(whole(Place.OUTBOX, "select"));
      grants.add(new Grant(Place.OUTBOX, "insert", MESSAGE));
      grants.add(whole(Place.SLEEPERS, "select"));
      grants.add(whole(Place.DEAD_LETTERS, "select"));
      grants.add(new Grant(Place.DEAD_LETTERS, "update", REDRIVE));
      grants.add(whole(Place.DEAD_LETTERS, "delete"));
    }
    return grants.stream().distinct().toList();
  }

  private static Grant whole(Place place, String privilege) {
    return new Grant(place, privilege, List.of());
  }
}
