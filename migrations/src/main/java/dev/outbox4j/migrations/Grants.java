package dev.outbox4j.migrations;

import java.util.Objects;

/** Writes the least that each role needs. */
final class Grants {
  private static final String MESSAGE =
      "queue, type, ordering_key, payload, headers, available_at, timer_id";

  /** What claims and outcomes write; a message itself is never changed. */
  private static final String DELIVERY =
      "available_at, lease_until, lease_token, leased_by, deliveries_count, attempts_count, "
          + "first_attempt_at, last_attempt_at, last_error";

  private static final String DEAD_LETTER =
      "original_id, queue, type, ordering_key, payload, headers, deliveries_count, "
          + "attempts_count, created_at, failure_reason, last_exception, timer_id";

  private final Names names;
  private final StringBuilder sql = new StringBuilder();

  Grants(Names names) {
    this.names = names;
  }

  Grants publisher(String role) {
    String to = to("publisher role", role);
    sql.append("-- publishes\n");
    usage(names.schema(), to);
    grant("insert (" + MESSAGE + "), select (id, queue, timer_id, available_at)", outbox(), to);
    grant("select (queue, wake_at)", sleepers(), to);
    grant("execute", "function " + names.qualified(names.table() + "_publish"), to);
    return this;
  }

  Grants timerCancellation(String role) {
    String to = to("publisher role", role);
    sql.append("-- cancels timers\n");
    usage(names.schema(), to);
    grant("delete, select (id, queue, timer_id, lease_until)", outbox(), to);
    return this;
  }

  Grants subscriber(String role) {
    String to = to("subscriber role", role);
    sql.append("-- subscribes\n");
    usage(names.schema(), to);
    grant("select, update (" + DELIVERY + "), delete", outbox(), to);
    grant("select, insert, update (wake_at), delete", sleepers(), to);
    usage(names.deadLetterSchema(), to);
    grant("insert (" + DEAD_LETTER + ")", names.deadLetterName(), to);
    return this;
  }

  Grants operator(String role) {
    String to = to("operator role", role);
    sql.append("-- operates: looks at the queue, works on dead letters\n");
    usage(names.schema(), to);
    grant("select, insert (" + MESSAGE + ")", outbox(), to);
    grant("select", sleepers(), to);
    usage(names.deadLetterSchema(), to);
    grant(
        "select, update (redriven_at, redriven_by, redriven_id), delete",
        names.deadLetterName(),
        to);
    return this;
  }

  /** Functions are open to everyone unless that is revoked. */
  Grants closeFunction() {
    sql.append("revoke all on function ")
        .append(names.qualified(names.table() + "_publish"))
        .append(" from public;\n");
    return this;
  }

  private String outbox() {
    return names.qualified(names.table());
  }

  private String sleepers() {
    return names.qualified(names.table() + "_sleepers");
  }

  private void usage(String schema, String to) {
    grant("usage", "schema " + Names.quoted(schema), to);
  }

  private void grant(String what, String on, String to) {
    sql.append("grant ").append(what).append(" on ").append(on).append(to).append(";\n");
  }

  private static String to(String what, String role) {
    Objects.requireNonNull(role, what);
    if (role.isBlank() || role.chars().anyMatch(Character::isISOControl)) {
      throw new IllegalArgumentException(
          what + " is blank or holds control characters; give the name of a role");
    }
    if (Names.bytes(role) > Names.MAX_BYTES) {
      throw new IllegalArgumentException(
          "%s '%s' is %d bytes long and PostgreSQL keeps %d; shorten it"
              .formatted(what, role, Names.bytes(role), Names.MAX_BYTES));
    }
    return " to " + Names.quoted(role);
  }

  @Override
  public String toString() {
    return sql.toString();
  }
}
