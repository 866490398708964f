package dev.outbox4j.postgres.internal.schema;

import dev.outbox4j.postgres.SchemaFault;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.util.List;

/** Looks for the SQL function that publishes. */
final class FunctionComparison {
  private static final String FUNCTIONS =
      """
      select pg_catalog.pg_get_function_identity_arguments(p.oid), pg_catalog.format_type(p.prorettype, null),
             p.prokind = 'f' and p.prorettype = 'bigint'::regtype and p.pronargs - p.pronargdefaults <= 2
               and p.pronargs >= 2 and p.proargtypes[0] = 'text'::regtype and p.proargtypes[1] = 'bytea'::regtype,
             pg_catalog.has_function_privilege(p.oid, 'execute')
      from pg_catalog.pg_proc p
      join pg_catalog.pg_namespace n on n.oid = p.pronamespace
      where p.proname = ? and n.nspname = ?
      order by 3 desc, 1
      """;

  private final Catalog catalog;
  private final String user;
  private final List<SchemaFault> faults;

  FunctionComparison(Catalog catalog, String user, List<SchemaFault> faults) {
    this.catalog = catalog;
    this.user = user;
    this.faults = faults;
  }

  void compare(TableName function, boolean execute) throws SQLException {
    String label = "function " + function.label();
    try (PreparedStatement statement = catalog.prepare(FUNCTIONS)) {
      statement.setString(1, function.name());
      statement.setString(2, function.schema());
      try (ResultSet rows = statement.executeQuery()) {
        if (!rows.next()) {
          fault(label, "no such function", "create it as the migration does");
        } else if (!rows.getBoolean(3)) {
          fault(
              label,
              "(%s) returns %s".formatted(rows.getString(1), rows.getString(2)),
              "create it as the migration does");
        } else if (execute && !rows.getBoolean(4)) {
          faults.add(
              new SchemaFault(
                  "grant on " + label,
                  "execute for role " + TableName.plain(user),
                  "none",
                  "grant execute on function %s to %s"
                      .formatted(function.sql(), TableName.quoted(user))));
        }
      }
    }
  }

  private void fault(String label, String found, String remedy) {
    faults.add(
        new SchemaFault(
            label,
            "a function that can be called with (queue text, payload bytea) and returns bigint",
            found,
            remedy));
  }
}
