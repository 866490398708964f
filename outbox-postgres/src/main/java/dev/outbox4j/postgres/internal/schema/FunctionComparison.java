package dev.outbox4j.postgres.internal.schema;

import dev.outbox4j.internal.schema.Layout;
import dev.outbox4j.internal.schema.Place;
import dev.outbox4j.postgres.SchemaFault;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.util.List;
import java.util.OptionalInt;

/** Looks at a function that publishing calls. */
final class FunctionComparison {
  private static final String FUNCTIONS =
      """
      select pg_catalog.pg_get_function_identity_arguments(p.oid), pg_catalog.format_type(p.prorettype, null),
             p.prokind = 'f' and p.prorettype = '{returns}'::regtype and {signature},
             pg_catalog.has_function_privilege(p.oid, 'execute'),
             case p.provolatile when 'i' then 'immutable' when 's' then 'stable' else 'volatile' end,
             p.prosecdef,
             coalesce('search_path=pg_catalog, pg_temp' = any(p.proconfig), false),
             p.prosrc
      from pg_catalog.pg_proc p
      join pg_catalog.pg_namespace n on n.oid = p.pronamespace
      where p.proname = ? and n.nspname = ?
      order by 3 desc, 1
      """;

  /** How a function is called. */
  enum Signature {
    PUBLISH(
        "bigint",
        "(queue text, payload bytea)",
        """
        p.pronargs - p.pronargdefaults <= 2 and p.pronargs >= 2
          and p.proargtypes[0] = 'text'::regtype and p.proargtypes[1] = 'bytea'::regtype\
        """),
    TAKE_DEDUP_KEYS(
        "bigint",
        "(text[], text[], bigint[], interval[], interval[])",
        """
        p.proretset and pg_catalog.oidvectortypes(p.proargtypes) =
          'text[], text[], bigint[], interval[], interval[]'\
        """),
    ENQUEUE_JOBS(
        "record",
        "(text, text, text, bytea, jsonb, interval, interval, interval)",
        """
        p.proretset and pg_catalog.oidvectortypes(p.proargtypes) =
          'text, text, text, bytea, jsonb, interval, interval, interval'\
        """);

    private final String returns;
    private final String arguments;
    private final String predicate;

    Signature(String returns, String arguments, String predicate) {
      this.returns = returns;
      this.arguments = arguments;
      this.predicate = predicate;
    }
  }

  private static final String CREATE = "drop it and create it as the migration does";

  private final Catalog catalog;
  private final String user;
  private final List<SchemaFault> faults;
  private final Signature signature;

  FunctionComparison(Signature signature, Catalog catalog, String user, List<SchemaFault> faults) {
    this.signature = signature;
    this.catalog = catalog;
    this.user = user;
    this.faults = faults;
  }

  void compare(TableName function, boolean execute) throws SQLException {
    String label = "function " + function.label();
    try (PreparedStatement statement =
        catalog.prepare(
            FUNCTIONS
                .replace("{returns}", signature.returns)
                .replace("{signature}", signature.predicate))) {
      statement.setString(1, function.name());
      statement.setString(2, function.schema());
      try (ResultSet rows = statement.executeQuery()) {
        if (!rows.next()) {
          missing(label, "no such function");
        } else if (!rows.getBoolean(3)) {
          missing(label, "(%s) returns %s".formatted(rows.getString(1), rows.getString(2)));
        } else {
          compareProperties(label, rows);
          if (execute && !rows.getBoolean(4)) {
            faults.add(
                new SchemaFault(
                    "grant on " + label,
                    "execute for role " + TableName.plain(user),
                    "none",
                    "grant execute on function %s to %s"
                        .formatted(function.sql(), TableName.quoted(user))));
          }
          compareOverloads(label, rows);
        }
      }
    }
  }

  private void compareProperties(String label, ResultSet row) throws SQLException {
    String volatility = row.getString(5);
    if (!volatility.equals("volatile")) {
      fault(label, "a volatile function, since it writes", volatility, CREATE);
    }
    if (row.getBoolean(6)) {
      fault(
          label,
          "a function that runs with its caller's rights",
          "security definer, so that whoever may call it publishes with its owner's rights",
          CREATE);
    }
    if (!row.getBoolean(7)) {
      fault(label, "search_path set to pg_catalog, pg_temp", "not set so", CREATE);
    }
    int needed = Layout.of(Place.OUTBOX).version();
    OptionalInt found = VersionComparison.versionIn(row.getString(8));
    if (found.isEmpty() || found.getAsInt() < needed) {
      fault(
          label,
          "the body of schema " + needed,
          found.isPresent() ? "that of schema " + found.getAsInt() : "another body",
          CREATE);
    }
  }

  /** A second one that takes the same arguments makes calls ambiguous. */
  private void compareOverloads(String label, ResultSet rows) throws SQLException {
    while (rows.next() && rows.getBoolean(3)) {
      fault(
          label,
          "one function of that name that can be called with " + signature.arguments,
          "another one: (" + rows.getString(1) + ")",
          "drop the one that the migration does not create");
    }
  }

  private void missing(String label, String found) {
    fault(
        label,
        "a function that can be called with "
            + signature.arguments
            + " and returns "
            + signature.returns,
        found,
        "create it as the migration does");
  }

  private void fault(String label, String wanted, String found, String remedy) {
    faults.add(new SchemaFault(label, wanted, found, remedy));
  }
}
