package dev.outbox4j.migrations;

import dev.outbox4j.internal.schema.Names;
import java.util.Map;
import java.util.Objects;
import javax.sql.DataSource;
import org.flywaydb.core.Flyway;
import org.flywaydb.core.api.configuration.FluentConfiguration;

/**
 * The migrations of the dedup keys that were published: a table, a function and a history of their
 * own. An outbox to which nobody publishes with {@code dedupKey(...)} needs none of it. Immutable;
 * two are equal if their names are.
 *
 * @param schema the outbox's schema
 * @param outbox the outbox table
 */
public record DedupMigrations(String schema, String outbox) {
  /** The version to which these migrations bring the table: {@value}. */
  public static final int LATEST_VERSION = 1;

  /** Checks the names, see {@link #of}. */
  public DedupMigrations {
    Names.requireIdentifier("schema name", schema);
    Names.requireOutbox("table name", outbox);
  }

  /**
   * Returns the migrations of the dedup keys of an outbox.
   *
   * @param schema the outbox's schema
   * @param outbox the outbox table
   * @return the migrations
   * @throws IllegalArgumentException if a name is not allowed
   */
  public static DedupMigrations of(String schema, String outbox) {
    return new DedupMigrations(schema, outbox);
  }

  /**
   * Applies what is missing; see {@link OutboxMigrations#migrate} for the connections it needs.
   *
   * @param dataSource connections of the outbox's owner
   * @return how many migrations were applied; 0 if all were already
   * @throws org.flywaydb.core.api.FlywayException if a migration fails; nothing of it remains then
   */
  public int migrate(DataSource dataSource) {
    Objects.requireNonNull(dataSource, "dataSource");
    return Scripts.migrate(configure(Flyway.configure().dataSource(dataSource)));
  }

  /**
   * Sets location, schema, history table and placeholders on a Flyway configuration that is used
   * for this table alone.
   *
   * @param flyway the configuration, with its data source
   * @return the same
   */
  public FluentConfiguration configure(FluentConfiguration flyway) {
    return Scripts.DEDUP.configure(flyway, schema, Names.dedupHistory(outbox), placeholders());
  }

  /**
   * Returns all migrations as SQL, to be run once and in one transaction.
   *
   * @return the SQL; it creates no schema
   */
  public String sql() {
    return sql(0, LATEST_VERSION);
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
    return Scripts.DEDUP.sql(fromVersion, toVersion, placeholders());
  }

  /**
   * Returns what publishers of dedup keys need beyond {@link OutboxMigrations#grantsSql}, as SQL,
   * for the table's owner to run. The ids of messages come from the sequence that the outbox's
   * migrations made.
   *
   * @param publisherRole the role of publishers
   * @return the SQL
   * @throws IllegalArgumentException if the name is blank, has control characters or is too long
   */
  public String grantsSql(String publisherRole) {
    return new Grants(schema, outbox, DeadLetterMigrations.of(schema, Names.deadLetters(outbox)))
        .dedupPublisher(publisherRole)
        .toString();
  }

  private Map<String, String> placeholders() {
    return Map.of("outbox_schema", schema, "outbox_table", outbox);
  }
}
