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

  private static final List<String> PUBLISHED =
      List.of("queue", "type", "ordering_key", "payload", "headers", "available_at", "timer_id");

  static List<Grant> of(Set<OutboxRole> roles) {
    List<Grant> grants = new ArrayList<>();
    if (roles.contains(OutboxRole.PUBLISHER)) {
      grants.add(new Grant(Place.OUTBOX, "insert", PUBLISHED));
      grants.add(
          new Grant(Place.OUTBOX, "select", List.of("id", "queue", "timer_id", "available_at")));
      grants.add(whole(Place.SLEEPERS, "select"));
    }
    if (roles.contains(OutboxRole.SUBSCRIBER)) {
      grants.add(whole(Place.OUTBOX, "select"));
      grants.add(whole(Place.OUTBOX, "update"));
      grants.add(whole(Place.OUTBOX, "delete"));
      grants.add(whole(Place.SLEEPERS, "select"));
      grants.add(whole(Place.SLEEPERS, "insert"));
      grants.add(whole(Place.SLEEPERS, "update"));
      grants.add(whole(Place.SLEEPERS, "delete"));
      grants.add(whole(Place.DEAD_LETTERS, "insert"));
    }
    if (roles.contains(OutboxRole.OPERATOR)) {
      grants.add(whole(Place.OUTBOX, "select"));
      grants.add(whole(Place.OUTBOX, "insert"));
      grants.add(whole(Place.SLEEPERS, "select"));
      grants.add(whole(Place.DEAD_LETTERS, "select"));
      grants.add(whole(Place.DEAD_LETTERS, "update"));
      grants.add(whole(Place.DEAD_LETTERS, "delete"));
    }
    return grants.stream().distinct().toList();
  }

  private static Grant whole(Place place, String privilege) {
    return new Grant(place, privilege, List.of());
  }
}
