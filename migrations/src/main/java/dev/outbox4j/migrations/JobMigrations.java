package dev.outbox4j.migrations;

import dev.outbox4j.internal.schema.Names;
import java.util.Map;
import java.util.Objects;
import javax.sql.DataSource;
import org.flywaydb.core.Flyway;
import org.flywaydb.core.api.configuration.FluentConfiguration;

/**
 * The migrations of job queues beside an outbox: two tables and a function, with a history of their
 * own. A service without job queues needs none of it. Immutable; two are equal if their names are.
 *
 * @param schema the outbox's schema
 * @param outbox the outbox table
 */
public record JobMigrations(String schema, String outbox) {
  /** The version to which these migrations bring the tables: {@value}. */
  public static final int LATEST_VERSION = 1;

  /** Checks the names, see {@link #of}. */
  public JobMigrations {
    Names.requireIdentifier("schema name", schema);
    Names.requireOutbox("table name", outbox);
  }

  /**
   * Returns the migrations of the job queues of an outbox.
   *
   * @param schema the outbox's schema
   * @param outbox the outbox table
   * @return the migrations
   * @throws IllegalArgumentException if a name is not allowed
   */
  public static JobMigrations of(String schema, String outbox) {
    return new JobMigrations(schema, outbox);
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
   * for these tables alone.
   *
   * @param flyway the configuration, with its data source
   * @return the same
   */
  public FluentConfiguration configure(FluentConfiguration flyway) {
    return Scripts.JOBS.configure(flyway, schema, Names.jobsHistory(outbox), placeholders());
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
   * @param fromVersion the version that the tables have; 0 if there is none yet
   * @param toVersion the version that they are to have, at most {@link #LATEST_VERSION}
   * @return the SQL; it creates no schema
   * @throws IllegalArgumentException if there are no such versions
   */
  public String sql(int fromVersion, int toVersion) {
    return Scripts.JOBS.sql(fromVersion, toVersion, placeholders());
  }

  /**
   * Returns what a process needs that enqueues jobs, runs them or asks for their states, as SQL,
   * for the tables' owner to run: beyond what a publisher needs to enqueue, and beyond what a
   * subscriber needs to run them.
   *
   * @param role the role
   * @return the SQL
   * @throws IllegalArgumentException if the name is blank, has control characters or is too long
   */
  public String grantsSql(String role) {
    return new Grants(schema, outbox, DeadLetterMigrations.of(schema, Names.deadLetters(outbox)))
        .jobs(role)
        .toString();
  }

  private Map<String, String> placeholders() {
    return Map.of("outbox_schema", schema, "outbox_table", outbox);
  }
}
