package dev.outbox4j.postgres.internal.schema;

import dev.outbox4j.internal.schema.Grant;
import dev.outbox4j.internal.schema.Layout;
import dev.outbox4j.internal.schema.Names;
import dev.outbox4j.internal.schema.Place;
import dev.outbox4j.postgres.OutboxRole;
import dev.outbox4j.postgres.SchemaFault;
import dev.outbox4j.postgres.internal.schema.FunctionComparison.Signature;
import dev.outbox4j.postgres.internal.schema.Live.Relation;
import dev.outbox4j.postgres.internal.schema.Live.Relations;
import java.sql.Connection;
import java.sql.SQLException;
import java.util.ArrayList;
import java.util.EnumMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.stream.Stream;
import javax.sql.DataSource;
import org.jspecify.annotations.Nullable;

/** Puts one question to one database and collects every fault. Confined to one thread. */
public final class SchemaInspection {
  private final SchemaQuestion question;
  private final Catalog catalog;
  private final List<SchemaFault> faults = new ArrayList<>();

  private SchemaInspection(SchemaQuestion question, Connection connection) {
    this.question = question;
    this.catalog = new Catalog(connection, Math.toIntExact(question.timeout().toSeconds()));
  }

  private interface Work {
    void run(SchemaInspection inspection) throws SQLException;
  }

  /** Returns every fault; that a database does not answer is one. */
  public static List<SchemaFault> faults(DataSource dataSource, SchemaQuestion question) {
    List<SchemaFault> all =
        new ArrayList<>(faults(dataSource, question, SchemaInspection::ofOutbox));
    for (InboxQuestion inbox : question.inboxes()) {
      boolean same = inbox.dataSource() == dataSource;
      List<SchemaFault> found =
          faults(inbox.dataSource(), question, inspection -> inspection.ofInbox(inbox, same));
      for (SchemaFault fault : found) {
        if (!same || !all.contains(fault)) {
          all.add(same ? fault : ofDatabase(inbox, fault));
        }
      }
    }
    return all;
  }

  private static List<SchemaFault> faults(
      DataSource dataSource, SchemaQuestion question, Work work) {
    try (Connection connection = dataSource.getConnection()) {
      SchemaInspection inspection = new SchemaInspection(question, connection);
      try {
        work.run(inspection);
      } finally {
        if (!connection.getAutoCommit()) {
          connection.rollback();
        }
      }
      return inspection.faults.stream().distinct().toList(); // tables may share one
    } catch (SQLException e) {
      return List.of(Unanswered.fault(e));
    } catch (RuntimeException e) {
      // a pool that cannot make its first connection may throw what it likes
      return List.of(Unanswered.fault(e));
    }
  }

  /** What is said of a server or a session is not the outbox's. */
  private static SchemaFault ofDatabase(InboxQuestion inbox, SchemaFault fault) {
    return Set.of("database", "server", "session").contains(fault.object())
        ? new SchemaFault(
            fault.object() + " of inbox " + inbox.table().label(),
            fault.expected(),
            fault.found(),
            fault.remedy())
        : fault;
  }

  private void ofOutbox() throws SQLException {
    Map<Place, TableName> names = new EnumMap<>(Place.class);
    names.put(Place.OUTBOX, question.outbox());
    names.put(Place.SLEEPERS, question.sleepers());
    TableName deadLetters = question.deadLetters();
    if (deadLetters != null) {
      for (Place place : Place.values()) {
        if (place.isOfDeadLetters()) {
          names.put(
              place,
              new TableName(deadLetters.schema(), Names.ofDeadLetters(place, deadLetters.name())));
        }
      }
    }
    if (!question.orderedQueues().isEmpty()) {
      names.put(Place.BUCKETS, question.beside(Place.BUCKETS));
      names.put(Place.BUCKET_OWNERS, question.beside(Place.BUCKET_OWNERS));
    }
    for (Place place : question.optional()) {
      names.put(place, question.beside(place));
    }
    Relations relations = relations(names);
    Live.Session session = relations.session();
    new SessionComparison(faults).compare(session);
    Map<Place, Relation> tables = compare(names, relations);
    Relation outbox = tables.get(Place.OUTBOX);
    boolean execute = question.roles().contains(OutboxRole.PUBLISHER);
    if (question.function() && outbox != null) {
      new FunctionComparison(Signature.PUBLISH, catalog, session.user(), faults)
          .compare(outbox.name().sibling(question.table().publishFunction()), execute);
    }
    Relation dedup = tables.get(Place.DEDUP);
    if (dedup != null) {
      new FunctionComparison(Signature.TAKE_DEDUP_KEYS, catalog, session.user(), faults)
          .compare(dedup.name().sibling(Names.dedupTake(question.table().name())), execute);
    }
    Relation jobs = tables.get(Place.JOBS);
    if (jobs != null) {
      new FunctionComparison(Signature.ENQUEUE_JOBS, catalog, session.user(), faults)
          .compare(jobs.name().sibling(Names.jobEnqueue(question.table().name())), execute);
    }
    if (!question.roles().isEmpty() && !tables.isEmpty()) {
      new GrantComparison(catalog, session.user(), faults).compare(grants(), tables);
    }
  }

  private void ofInbox(InboxQuestion inbox, boolean same) throws SQLException {
    Map<Place, TableName> names = Map.of(Place.INBOX, inbox.table());
    Relations relations = relations(names);
    if (!same) {
      new SessionComparison(faults).compare(relations.session());
    }
    Map<Place, Relation> tables = compare(names, relations);
    if (question.roles().contains(OutboxRole.SUBSCRIBER) && !tables.isEmpty()) {
      new GrantComparison(catalog, relations.session().user(), faults)
          .compare(Grant.ofInbox(), tables);
    }
  }

  private Relations relations(Map<Place, TableName> names) throws SQLException {
    return catalog.relations(names.values().stream().map(TableName::name).distinct().toList());
  }

  /** Compares tables, and returns those that are there. */
  private Map<Place, Relation> compare(Map<Place, TableName> names, Relations relations)
      throws SQLException {
    Map<Place, Relation> tables = new EnumMap<>(Place.class);
    names.forEach(
        (place, name) -> {
          if (isBesideNoLetters(place, tables)) {
            return;
          }
          Relation found = find(place, name, relations);
          if (found != null) {
            tables.put(place, found);
          }
        });
    compareTables(tables);
    if (!tables.isEmpty()) {
      new ObstacleComparison(catalog, question.accepted(), faults)
          .compare(tables.values(), relations.session().user());
    }
    return tables;
  }

  /** What is missing with the dead letters is not said three times. */
  private static boolean isBesideNoLetters(Place place, Map<Place, Relation> found) {
    return place.isOfDeadLetters()
        && place != Place.DEAD_LETTERS
        && !found.containsKey(Place.DEAD_LETTERS);
  }

  private List<Grant> grants() {
    return question.roles().stream().sorted().flatMap(this::grantsOf).distinct().toList();
  }

  private Stream<Grant> grantsOf(OutboxRole role) {
    return switch (role) {
      case PUBLISHER ->
          Stream.of(
                  Grant.of(Grant.Role.PUBLISHER),
                  question.optional().contains(Place.DEDUP)
                      ? Grant.ofDedupPublisher()
                      : List.<Grant>of(),
                  question.optional().contains(Place.JOBS) ? Grant.ofJobs() : List.<Grant>of())
              .flatMap(List::stream);
      case SUBSCRIBER ->
          Stream.of(
                  Grant.of(Grant.Role.SUBSCRIBER), // on tables that were found
                  Grant.ofOrderedSubscriber(),
                  Grant.ofPausableSubscriber(),
                  Grant.ofLimitedSubscriber(),
                  Grant.ofTimers(),
                  Grant.ofLocks(),
                  Grant.ofMonitors(),
                  question.optional().contains(Place.JOBS) ? Grant.ofJobs() : List.<Grant>of(),
                  Grant.ofPollers())
              .flatMap(List::stream);
      case OPERATOR ->
          Stream.concat(Grant.of(Grant.Role.OPERATOR).stream(), Grant.ofPausingOperator().stream());
    };
  }

  private void compareTables(Map<Place, Relation> tables) throws SQLException {
    if (tables.isEmpty()) {
      return;
    }
    List<Long> oids = tables.values().stream().map(Relation::oid).toList();
    Map<Long, Map<String, Live.Column>> columns = catalog.columns(oids);
    List<Live.Index> indexes = catalog.indexes(oids);
    Map<Long, List<Live.Storage>> storage = question.storage() ? catalog.storage(oids) : Map.of();
    tables.forEach(
        (place, table) -> {
          TableComparison comparison = new TableComparison(Layout.of(place), table, faults);
          comparison.compareColumns(columns.getOrDefault(table.oid(), new LinkedHashMap<>()));
          comparison.compareIndexes(indexes);
          new VersionComparison(faults).compare(Layout.of(place), table);
          new StorageComparison(Layout.of(place), faults)
              .compare(storage.getOrDefault(table.oid(), List.of()));
        });
    Relation outbox = tables.get(Place.OUTBOX);
    Relation buckets = tables.get(Place.BUCKETS);
    if (outbox != null && buckets != null) {
      new OrderedComparison(catalog, faults)
          .compare(question.orderedQueues(), outbox, indexes, buckets);
    }
  }

  private @Nullable Relation find(Place place, TableName name, Relations relations) {
    Layout expected = Layout.of(place);
    List<Relation> named =
        relations.all().stream().filter(live -> live.name().name().equals(name.name())).toList();
    Relation found =
        named.stream()
            .filter(
                live ->
                    name.schema() == null
                        ? live.visible()
                        : name.schema().equals(live.name().schema()))
            .findFirst()
            .orElse(null);
    if (found == null) {
      fault(
          "table " + name.label(),
          "the " + expected.purpose(),
          missing(name, named, relations.session().searchPath()),
          "apply the migrations"
              + (name.schema() == null
                  ? ", or name the schema with "
                      + (place == Place.INBOX ? "Inbox.in(schema, table)" : "inSchema(...)")
                  : ""));
      return null;
    }
    if (!found.table()) {
      fault(
          "table " + found.name().label(),
          "a table",
          kind(found.kind()),
          "drop it and apply the migrations");
      return null;
    }
    if (!found.schemaUsable()) {
      fault(
          "schema " + TableName.plain(String.valueOf(found.name().schema())),
          "usage for role " + TableName.plain(relations.session().user()),
          "none",
          "grant usage on schema %s to %s"
              .formatted(
                  TableName.quoted(String.valueOf(found.name().schema())),
                  TableName.quoted(relations.session().user())));
    }
    if (expected.logged() && !found.persistence().equals("p")) {
      fault(
          "table " + found.name().label(),
          "a logged table",
          found.persistence().equals("u")
              ? "an unlogged one, which a crash empties"
              : "a temporary one, which others do not see",
          found.persistence().equals("u")
              ? "alter table " + found.name().sql() + " set logged"
              : "drop it");
    }
    return found;
  }

  private static String missing(TableName name, List<Relation> named, String searchPath) {
    String elsewhere =
        named.isEmpty()
            ? ""
            : ", but one in schema "
                + String.join(
                    ", ",
                    named.stream()
                        .map(live -> TableName.plain(String.valueOf(live.name().schema())))
                        .toList());
    return (name.schema() == null
            ? "none on the search path (%s)".formatted(searchPath)
            : "no such table")
        + elsewhere;
  }

  private static String kind(String relkind) {
    return switch (relkind) {
      case "v" -> "a view";
      case "m" -> "a materialized view";
      default -> "a foreign table";
    };
  }

  private void fault(String object, String wanted, String found, String remedy) {
    faults.add(new SchemaFault(object, wanted, found, remedy));
  }
}
