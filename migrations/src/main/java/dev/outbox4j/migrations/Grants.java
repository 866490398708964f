package dev.outbox4j.migrations;

import dev.outbox4j.internal.schema.Grant;
import dev.outbox4j.internal.schema.Names;
import dev.outbox4j.internal.schema.Place;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.stream.Collectors;

/** Writes the least that each role needs. */
final class Grants {
  private final String schema;
  private final String table;
  private final DeadLetterMigrations deadLetters;
  private final StringBuilder sql = new StringBuilder();

  Grants(String schema, String table, DeadLetterMigrations deadLetters) {
    this.schema = schema;
    this.table = table;
    this.deadLetters = deadLetters;
  }

  Grants publisher(String role) {
    String to = to("publisher role", role);
    write("publishes", Grant.Role.PUBLISHER, to);
    grant("execute", "function " + function(), to);
    return this;
  }

  Grants timerCancellation(String role) {
    write("cancels timers", Grant.Role.TIMER_CANCELLER, to("publisher role", role));
    return this;
  }

  Grants timerReplacement(String role) {
    write("replaces timers", Grant.Role.TIMER_REPLACER, to("publisher role", role));
    return this;
  }

  Grants subscriber(String role) {
    write("subscribes", Grant.Role.SUBSCRIBER, to("subscriber role", role));
    return this;
  }

  Grants operator(String role) {
    write(
        "operates: looks at the queue, works on dead letters",
        Grant.Role.OPERATOR,
        to("operator role", role));
    return this;
  }

  /** Functions are open to everyone unless that is revoked. */
  Grants closeFunction() {
    sql.append("revoke all on function ").append(function()).append(" from public;\n");
    return this;
  }

  private void write(String what, Grant.Role role, String to) {
    write(what, Grant.of(role), to);
  }

  /** Beyond what a subscriber needs. */
  Grants orderedSubscriber(String role) {
    write("subscribes to ordered queues", Grant.ofOrderedSubscriber(), to("subscriber role", role));
    return this;
  }

  /** Beyond what a subscriber needs. */
  Grants pausableSubscriber(String role) {
    write("heeds pauses", Grant.ofPausableSubscriber(), to("subscriber role", role));
    return this;
  }

  /** Beyond what a subscriber needs. */
  Grants limitedSubscriber(String role) {
    write("subscribes to limited queues", Grant.ofLimitedSubscriber(), to("subscriber role", role));
    return this;
  }

  /** Beyond what a publisher and a subscriber need. */
  Grants timers(String role) {
    write("runs timers, and controls them", Grant.ofTimers(), to("role", role));
    return this;
  }

  Grants locks(String role) {
    write("takes locks", Grant.ofLocks(), to("role", role));
    return this;
  }

  /** Beyond what a publisher and a subscriber need. */
  Grants monitors(String role) {
    write("runs monitors, and controls them", Grant.ofMonitors(), to("role", role));
    return this;
  }

  /** Beyond what a publisher or a subscriber needs. */
  Grants jobs(String role) {
    String to = to("role", role);
    String enqueue = "function " + qualified(schema, Names.jobEnqueue(table));
    sql.append("revoke all on ").append(enqueue).append(" from public;\n");
    write("enqueues jobs, runs them, and asks for their states", Grant.ofJobs(), to);
    grant("execute", enqueue, to);
    return this;
  }

  Grants pollers(String role) {
    write("runs pollers, and controls them", Grant.ofPollers(), to("role", role));
    return this;
  }

  /** Beyond what an operator needs. */
  Grants pausingOperator(String role) {
    write("pauses and resumes queues", Grant.ofPausingOperator(), to("operator role", role));
    return this;
  }

  /** Beyond what a publisher needs. */
  Grants dedupPublisher(String role) {
    String to = to("publisher role", role);
    String take = "function " + qualified(schema, Names.dedupTake(table));
    sql.append("revoke all on ").append(take).append(" from public;\n");
    write("publishes dedup keys", Grant.ofDedupPublisher(), to);
    grant("execute", take, to);
    grant("usage", "sequence " + qualified(schema, table + "_id_seq"), to);
    return this;
  }

  private void write(String what, List<Grant> grants, String to) {
    sql.append("-- ").append(what).append('\n');
    List<String> schemas = new ArrayList<>();
    for (Place place : Place.values()) {
      List<Grant> wanted = grants.stream().filter(each -> each.place() == place).toList();
      if (!wanted.isEmpty()) {
        String of = place.isOfDeadLetters() ? deadLetters.schema() : schema;
        if (!schemas.contains(of)) {
          schemas.add(of);
          grant("usage", "schema " + Names.quoted(of), to);
        }
        grant(wanted.stream().map(Grant::sql).collect(Collectors.joining(", ")), name(place), to);
      }
    }
  }

  private String name(Place place) {
    return place.isOfDeadLetters()
        ? qualified(deadLetters.schema(), Names.ofDeadLetters(place, deadLetters.table()))
        : qualified(schema, Names.of(place, table));
  }

  private String function() {
    return qualified(schema, Names.publishFunction(table));
  }

  private static String qualified(String schema, String local) {
    return Names.quoted(schema) + "." + Names.quoted(local);
  }

  private void grant(String what, String on, String to) {
    sql.append("grant ").append(what).append(" on ").append(on).append(to).append(";\n");
  }

  static String to(String what, String role) {
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
