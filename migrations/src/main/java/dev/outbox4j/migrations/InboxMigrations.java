package dev.outbox4j.migrations;

import dev.outbox4j.internal.schema.Names;
import java.util.Map;
import java.util.Objects;
import javax.sql.DataSource;
import org.flywaydb.core.Flyway;
import org.flywaydb.core.api.configuration.FluentConfiguration;

/**
 * The migrations of one inbox table, which belongs into the database that handlers write to. It has
 * a history of its own, {@code <table>_schema_history}. Nothing else needs it: it is there only
 * where these migrations are applied. Immutable; two are equal if their names are.
 *
 * @param schema the schema of the table
 * @param table the table's name
 */
public record InboxMigrations(String schema, String table) {
  /** The version to which these migrations bring an inbox table: {@value}. */
  public static final int LATEST_VERSION = 1;

  /** Checks the names, see {@link #of}. */
  public InboxMigrations {
    Names.requireIdentifier("inbox schema name", schema);
    Names.requireInbox("inbox table name", table);
  }

  /**
   * Returns the migrations of an inbox table.
   *
   * @param schema its schema; created if it is missing
   * @param table its name, at most 36 bytes: letters, digits, {@code _}, {@code -} and spaces,
   *     beginning with a letter or {@code _}
   * @return the migrations
   * @throws IllegalArgumentException if a name has other characters or is too long
   */
  public static InboxMigrations of(String schema, String table) {
    return new InboxMigrations(schema, table);
  }

  /**
   * Applies what is missing; see {@link OutboxMigrations#migrate} for the connections it needs.
   *
   * @param dataSource connections of the table's owner-to-be
   * @return how many migrations were applied; 0 if all were already
   * @throws org.flywaydb.core.api.FlywayException if a migration fails; nothing of it remains then
   */
  public int migrate(DataSource dataSource) {
    Objects.requireNonNull(dataSource, "dataSource");
    return Scripts.migrate(configure(Flyway.configure().dataSource(dataSource)));
  }

  /**
   * Sets location, schema, history table and placeholders on a Flyway configuration that is used
   * for this inbox table alone.
   *
   * @param flyway the configuration, with its data source
   * @return the same
   */
  public FluentConfiguration configure(FluentConfiguration flyway) {
    return Scripts.INBOX.configure(flyway, schema, Names.history(table), placeholders());
  }

  /**
   * Returns all migrations as SQL, to be run once and in one transaction. A schema other than
   * {@code public} is created if it is missing.
   *
   * @return the SQL
   */
  public String sql() {
    return Scripts.createSchema(schema) + sql(0, LATEST_VERSION);
  }

  /**
   * Returns some of the migrations as SQL, for teams that number their own: a file for each
   * release.
   *
   * @param fromVersion the version that the table has; 0 if there is none yet
   * @param toVersion the version that it is to have, at most {@link #LATEST_VERSION}
   * @return the SQL; it creates no schema
   * @throws IllegalArgumentException if there are no such versions
   */
  public String sql(int fromVersion, int toVersion) {
    return Scripts.INBOX.sql(fromVersion, toVersion, placeholders());
  }

  /**
   * Returns what a service needs that has an inbox there, as SQL, for the table's owner to run.
   *
   * @param role the service's role
   * @return the SQL
   * @throws IllegalArgumentException if the name is blank, has control characters or is too long
   */
  public String grantsSql(String role) {
    String to = Grants.to("inbox role", role);
    return "grant usage on schema %s%s;\ngrant select, insert, update, delete on %s%s;\n"
        .formatted(Names.quoted(schema), to, Names.qualified(schema, table), to);
  }

  private Map<String, String> placeholders() {
    return Map.of("inbox_schema", schema, "inbox_table", table);
  }
}
