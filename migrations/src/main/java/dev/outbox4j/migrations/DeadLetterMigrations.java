package dev.outbox4j.migrations;

import dev.outbox4j.internal.schema.Names;
import java.util.Map;
import java.util.Objects;
import javax.sql.DataSource;
import org.flywaydb.core.Flyway;
import org.flywaydb.core.api.configuration.FluentConfiguration;

/**
 * The migrations of one dead-letter table. They have a history of their own, {@code
 * <table>_schema_history}, so that several outboxes can share the table. Immutable; two are equal
 * if their names are.
 *
 * <p>{@link OutboxMigrations#migrate} applies them as well. Use this class for a dead-letter table
 * that another role owns, or with a Flyway of your own.
 *
 * @param schema the schema of the table
 * @param table the table's name
 */
public record DeadLetterMigrations(String schema, String table) {
  /** The version to which these migrations bring a dead-letter table: {@value}. */
  public static final int LATEST_VERSION = 1;

  /** Checks the names, see {@link #of}. */
  public DeadLetterMigrations {
    Names.requireIdentifier("dead-letter schema name", schema);
    Names.requireDeadLetters("dead-letter table name", table);
  }

  /**
   * Returns the migrations of a dead-letter table.
   *
   * @param schema its schema; created if it is missing
   * @param table its name, at most 36 bytes: letters, digits, {@code _}, {@code -} and spaces,
   *     beginning with a letter or {@code _}
   * @return the migrations
   * @throws IllegalArgumentException if a name has other characters or is too long
   */
  public static DeadLetterMigrations of(String schema, String table) {
    return new DeadLetterMigrations(schema, table);
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
   * for this dead-letter table alone.
   *
   * @param flyway the configuration, with its data source
   * @return the same
   */
  public FluentConfiguration configure(FluentConfiguration flyway) {
    return Scripts.DEAD_LETTERS.configure(flyway, schema, Names.history(table), placeholders());
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
    return Scripts.DEAD_LETTERS.sql(fromVersion, toVersion, placeholders());
  }

  private Map<String, String> placeholders() {
    return Map.of("outbox_dlq_schema", schema, "outbox_dlq_table", table);
  }
}
