package dev.outbox4j.postgres.internal.schema;

import dev.outbox4j.internal.schema.Grant;
import dev.outbox4j.internal.schema.Place;
import dev.outbox4j.postgres.SchemaFault;
import dev.outbox4j.postgres.internal.schema.Live.Relation;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;

/** Compares the connected role's rights, in one statement. */
final class GrantComparison {
  private static final String MISSING =
      """
      select w.nth, w.col
      from unnest(?::int[], ?::bigint[]::oid[], ?::text[], ?::text[]) as w(nth, rel, col, privilege)
      where case when w.col = '' then not pg_catalog.has_table_privilege(w.rel, w.privilege)
                 else exists (
                   select from pg_catalog.pg_attribute a
                   where a.attrelid = w.rel and a.attname = w.col and not a.attisdropped
                     and not pg_catalog.has_column_privilege(w.rel, a.attnum, w.privilege)) end
      order by w.nth
      """;

  private final Catalog catalog;
  private final String user;
  private final List<SchemaFault> faults;

  GrantComparison(Catalog catalog, String user, List<SchemaFault> faults) {
    this.catalog = catalog;
    this.user = user;
    this.faults = faults;
  }

  void compare(List<Grant> wanted, Map<Place, Relation> tables) throws SQLException {
    List<Integer> positions = new ArrayList<>();
    List<Long> oids = new ArrayList<>();
    List<String> columns = new ArrayList<>();
    List<String> privileges = new ArrayList<>();
    for (int i = 0; i < wanted.size(); i++) {
      Grant grant = wanted.get(i);
      Relation table = tables.get(grant.place());
      if (table == null) {
        continue; // a missing table is a fault of its own
      }
      for (String column : grant.columns().isEmpty() ? List.of("") : grant.columns()) {
        positions.add(i);
        oids.add(table.oid());
        columns.add(column);
        privileges.add(grant.privilege());
      }
    }
    Map<Integer, List<String>> missing = missing(positions, oids, columns, privileges);
    missing.forEach(
        (position, without) -> {
          Grant grant = wanted.get(position);
          Relation table = tables.get(grant.place());
          if (table != null) {
            fault(grant, without, table);
          }
        });
  }

  private Map<Integer, List<String>> missing(
      List<Integer> positions, List<Long> oids, List<String> columns, List<String> privileges)
      throws SQLException {
    Map<Integer, List<String>> missing = new TreeMap<>();
    try (PreparedStatement statement = catalog.prepare(MISSING)) {
      statement.setArray(1, statement.getConnection().createArrayOf("int4", positions.toArray()));
      statement.setArray(2, catalog.oids(oids));
      statement.setArray(3, catalog.texts(columns));
      statement.setArray(4, catalog.texts(privileges));
      try (ResultSet rows = statement.executeQuery()) {
        while (rows.next()) {
          missing.computeIfAbsent(rows.getInt(1), nth -> new ArrayList<>()).add(rows.getString(2));
        }
      }
    }
    return missing;
  }

  private void fault(Grant grant, List<String> without, Relation table) {
    boolean everywhere = without.size() == Math.max(1, grant.columns().size());
    faults.add(
        new SchemaFault(
            "grant on " + table.name().label(),
            grant.sql() + " for role " + TableName.plain(user),
            everywhere ? "none" : "none for " + String.join(", ", without),
            "grant %s on %s to %s"
                .formatted(grant.sql(), table.name().sql(), TableName.quoted(user))));
  }
}
