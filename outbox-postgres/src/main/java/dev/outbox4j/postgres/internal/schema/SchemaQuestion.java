package dev.outbox4j.postgres.internal.schema;

import dev.outbox4j.internal.schema.Names;
import dev.outbox4j.internal.schema.Place;
import dev.outbox4j.postgres.OutboxRole;
import dev.outbox4j.postgres.OutboxTable;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/**
 * What is to be compared.
 *
 * @param optional tables that not every outbox has, beside those of ordered queues
 * @param inboxes those of handlers, in whatever database
 */
public record SchemaQuestion(
    OutboxTable table,
    @Nullable TableName deadLetters,
    Set<String> orderedQueues,
    Set<Place> optional,
    List<InboxQuestion> inboxes,
    boolean storage,
    boolean function,
    Set<OutboxRole> roles,
    Set<String> accepted,
    Duration timeout) {

  /** Copies the sets. */
  public SchemaQuestion {
    orderedQueues = Set.copyOf(orderedQueues);
    optional = Set.copyOf(optional);
    inboxes = List.copyOf(inboxes);
    roles = Set.copyOf(roles);
    accepted = Set.copyOf(accepted);
  }

  /** Asks for the table and its sleepers only. */
  public static SchemaQuestion about(OutboxTable table, Duration timeout) {
    return new SchemaQuestion(
        table, null, Set.of(), Set.of(), List.of(), false, false, Set.of(), Set.of(), timeout);
  }

  /** Adds the dead letters. */
  public SchemaQuestion withDeadLetters(@Nullable String schema, String name) {
    return new SchemaQuestion(
        table,
        new TableName(schema, name),
        orderedQueues,
        optional,
        inboxes,
        storage,
        function,
        roles,
        accepted,
        timeout);
  }

  /** Sets the queues that are to be ordered. */
  public SchemaQuestion withOrderedQueues(Set<String> queues) {
    return new SchemaQuestion(
        table, deadLetters, queues, optional, inboxes, storage, function, roles, accepted, timeout);
  }

  /** Adds an optional table. */
  public SchemaQuestion with(Place place) {
    Set<Place> more = new HashSet<>(optional);
    more.add(place);
    return new SchemaQuestion(
        table,
        deadLetters,
        orderedQueues,
        more,
        inboxes,
        storage,
        function,
        roles,
        accepted,
        timeout);
  }

  /** Adds an inbox. */
  public SchemaQuestion with(InboxQuestion inbox) {
    List<InboxQuestion> more = new ArrayList<>(inboxes);
    more.add(inbox);
    return new SchemaQuestion(
        table,
        deadLetters,
        orderedQueues,
        optional,
        more,
        storage,
        function,
        roles,
        accepted,
        timeout);
  }

  /** Adds the storage settings. */
  public SchemaQuestion withStorage() {
    return new SchemaQuestion(
        table,
        deadLetters,
        orderedQueues,
        optional,
        inboxes,
        true,
        function,
        roles,
        accepted,
        timeout);
  }

  /** Adds the publishing function. */
  public SchemaQuestion withFunction() {
    return new SchemaQuestion(
        table,
        deadLetters,
        orderedQueues,
        optional,
        inboxes,
        storage,
        true,
        roles,
        accepted,
        timeout);
  }

  /** Sets the roles whose grants are wanted. */
  public SchemaQuestion withRoles(Set<OutboxRole> roles) {
    return new SchemaQuestion(
        table,
        deadLetters,
        orderedQueues,
        optional,
        inboxes,
        storage,
        function,
        roles,
        accepted,
        timeout);
  }

  /** Sets the names of triggers, rules and constraints that are meant to be there. */
  public SchemaQuestion withAccepted(Set<String> accepted) {
    return new SchemaQuestion(
        table,
        deadLetters,
        orderedQueues,
        optional,
        inboxes,
        storage,
        function,
        roles,
        accepted,
        timeout);
  }

  /** Sets the wait for one statement. */
  public SchemaQuestion withTimeout(Duration timeout) {
    return new SchemaQuestion(
        table,
        deadLetters,
        orderedQueues,
        optional,
        inboxes,
        storage,
        function,
        roles,
        accepted,
        timeout);
  }

  TableName outbox() {
    return new TableName(table.schema().orElse(null), table.name());
  }

  TableName sleepers() {
    return beside(Place.SLEEPERS);
  }

  TableName beside(Place place) {
    return new TableName(table.schema().orElse(null), Names.of(place, table.name()));
  }
}
