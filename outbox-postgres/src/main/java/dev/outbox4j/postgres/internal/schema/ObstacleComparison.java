package dev.outbox4j.postgres.internal.schema;

import dev.outbox4j.postgres.SchemaFault;
import dev.outbox4j.postgres.internal.schema.Live.Relation;
import java.sql.SQLException;
import java.util.Collection;
import java.util.List;
import java.util.Set;

/** Looks for what may swallow, refuse or hide rows that the library writes. */
final class ObstacleComparison {
  private final Catalog catalog;
  private final List<SchemaFault> faults;
  private final Set<String> accepted;

  ObstacleComparison(Catalog catalog, Set<String> accepted, List<SchemaFault> faults) {
    this.catalog = catalog;
    this.accepted = accepted;
    this.faults = faults;
  }

  void compare(Collection<Relation> tables, String user) throws SQLException {
    List<Long> oids = tables.stream().map(Relation::oid).toList();
    for (Live.Obstacle obstacle : catalog.obstacles(oids)) {
      if (!accepted.contains(obstacle.name())) {
        fault(obstacle);
      }
    }
    List<Live.Gaps> gaps = catalog.gaps(oids);
    for (Relation table : tables) {
      gaps.stream()
          .filter(gap -> gap.table() == table.oid())
          .forEach(gap -> fault(gap, table, user));
    }
  }

  private void fault(Live.Obstacle obstacle) {
    String what = obstacle.kind() + " " + TableName.plain(obstacle.name());
    boolean referenced = obstacle.definition().contains(" on table ");
    faults.add(
        new SchemaFault(
            what + " of " + obstacle.on().label(),
            "no %s of your own, since it may drop or refuse what the library writes"
                .formatted(obstacle.kind()),
            obstacle.definition(),
            remedy(obstacle, referenced)
                + ", or name it in accept(...) of the SchemaValidator if it is meant to be there"));
  }

  private static String remedy(Live.Obstacle obstacle, boolean referenced) {
    String name = TableName.quoted(obstacle.name());
    if (referenced) {
      return "drop constraint " + name + " of the table that refers to this one";
    }
    return switch (obstacle.kind()) {
      case "constraint" -> "alter table " + obstacle.on().sql() + " drop constraint " + name;
      default -> "drop " + obstacle.kind() + " " + name + " on " + obstacle.on().sql();
    };
  }

  private void fault(Live.Gaps gap, Relation table, String user) {
    if (gap.rowsHidden()) {
      faults.add(
          new SchemaFault(
              "row security of " + table.name().label(),
              "role " + TableName.plain(user) + " to see all rows",
              "row security is active for it",
              "alter table "
                  + table.name().sql()
                  + " disable row level security, or use a role with bypassrls"));
    }
    for (TableName parent : gap.withoutDefault()) {
      faults.add(
          new SchemaFault(
              "table " + parent.label(),
              "a default partition, for rows that no other partition takes",
              "none",
              "create table %s partition of %s default"
                  .formatted(parent.sibling(parent.name() + "_default").sql(), parent.sql())));
    }
  }
}
