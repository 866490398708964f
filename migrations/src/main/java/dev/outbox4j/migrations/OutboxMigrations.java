package dev.outbox4j.migrations;

import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import javax.sql.DataSource;
import org.flywaydb.core.Flyway;
import org.flywaydb.core.api.configuration.FluentConfiguration;
import org.flywaydb.database.postgresql.PostgreSQLConfigurationExtension;

/**
 * The migrations of one outbox: its table, its dead-letter table, the sleepers of its notification
 * gate, and the function that publishes from SQL. Immutable.
 *
 * <p>There are three ways to apply them:
 *
 * <ul>
 *   <li>{@link #migrate}, one call. Each outbox keeps a history of its own, {@code
 *       <table>_schema_history}, so that several live in one schema, and beside the service's own
 *       migrations.
 *   <li>A Flyway of your own: {@link #configure} sets all of the above on it, and leaves you the
 *       rest (callbacks, lock retries, who installed). Or add {@link #LOCATION} and {@link
 *       #placeholders()} to the Flyway that migrates the service; then the outbox takes versions
 *       from the service's numbering, which begin with 1.
 *   <li>Without Flyway at run time: {@link #sql()} is the whole SQL, for a file of your own.
 * </ul>
 *
 * <p>Names are used exactly as given, quoted, so upper case counts; they are checked here, and a
 * name that PostgreSQL would truncate is refused.
 */
public final class OutboxMigrations {
  /** Where the migrations are on the class path, for a Flyway of your own: {@value}. */
  public static final String LOCATION = "classpath:dev/outbox4j/migrations";

  private final Names names;

  private OutboxMigrations(Names names) {
    this.names = names;
  }

  /** {@return the migrations of {@code public.outbox} and {@code public.outbox_dlq}} */
  public static OutboxMigrations standard() {
    return of("public", "outbox");
  }

  /**
   * Returns the migrations of a table and of {@code <table>_dlq} beside it.
   *
   * @param schema the schema of both; created if it is missing
   * @param table the outbox table: letters, digits, {@code _}, {@code -} and spaces, beginning with
   *     a letter or {@code _}
   * @return the migrations
   * @throws IllegalArgumentException if a name has other characters, or a name derived from it is
   *     longer than the 63 bytes that PostgreSQL keeps
   */
  public static OutboxMigrations of(String schema, String table) {
    return new OutboxMigrations(new Names(schema, table, schema, table + "_dlq"));
  }

  /**
   * Returns the same with another dead-letter table.
   *
   * @param schema its schema; created if it is missing
   * @param table its name, by the same rule as the outbox's
   * @return the migrations
   * @throws IllegalArgumentException if a name is not allowed, or clashes with one of the outbox's
   */
  public OutboxMigrations deadLetters(String schema, String table) {
    return new OutboxMigrations(new Names(names.schema(), names.table(), schema, table));
  }

  /**
   * Applies what is missing. Several processes may call it at once: one applies, the others wait. A
   * pool of one connection is enough. Connect to the server itself and not through a pooler in
   * transaction mode, since the lock belongs to the session.
   *
   * @param dataSource connections of the tables' owner-to-be; it needs the right to create schemas
   *     only if one is missing
   * @return how many migrations were applied; 0 if all were already
   * @throws org.flywaydb.core.api.FlywayException if a migration fails; nothing of it remains then
   */
  public int migrate(DataSource dataSource) {
    Objects.requireNonNull(dataSource, "dataSource");
    return configure(Flyway.configure().dataSource(dataSource)).load().migrate().migrationsExecuted;
  }

  /**
   * Sets location, schemas, history table and placeholders on a Flyway configuration that is used
   * for this outbox alone.
   *
   * @param flyway the configuration, with its data source
   * @return the same
   */
  public FluentConfiguration configure(FluentConfiguration flyway) {
    // a lock of the session and not of a transaction: Flyway then uses one connection and not two
    flyway
        .getConfigurationExtension(PostgreSQLConfigurationExtension.class)
        .setTransactionalLock(false);
    return flyway
        .locations(LOCATION)
        .defaultSchema(names.schema())
        .schemas(schemas().toArray(String[]::new))
        .createSchemas(true)
        .table(names.historyTable())
        .placeholders(placeholders())
        // other tables of the schema are none of this history's business
        .baselineOnMigrate(true)
        .baselineVersion("0");
  }

  /** {@return the placeholders that the migrations use, and their values} */
  public Map<String, String> placeholders() {
    Map<String, String> values = new LinkedHashMap<>();
    values.put("outbox_schema", names.schema());
    values.put("outbox_table", names.table());
    values.put("outbox_dlq_schema", names.deadLetterSchema());
    values.put("outbox_dlq_table", names.deadLetterTable());
    return Map.copyOf(values);
  }

  /**
   * Returns all migrations as SQL, placeholders resolved, to be run once and in one transaction,
   * for teams whose migrations are run by something else. Schemas other than {@code public} are
   * created if they are missing.
   *
   * @return the SQL
   */
  public String sql() {
    StringBuilder sql = new StringBuilder();
    for (String schema : schemas()) {
      if (!schema.equals("public")) {
        sql.append("create schema if not exists ").append(Names.quoted(schema)).append(";\n\n");
      }
    }
    return sql.append(Scripts.resolved(placeholders())).toString();
  }

  /**
   * Returns the least-privilege grants of three existing roles as SQL, for the tables' owner to run
   * after the migration. One role may have several of the parts.
   *
   * <ul>
   *   <li>The publisher inserts messages and sees no payload.
   *   <li>The subscriber claims, settles and dead-letters; it cannot publish, change a message, nor
   *       read dead letters.
   *   <li>The operator looks at the queue, and browses, redrives and purges dead letters; it cannot
   *       change what they hold.
   * </ul>
   *
   * <p>The right to call the publishing function is taken from everyone else.
   *
   * @param publisherRole the role of services that publish
   * @param subscriberRole the role of services that subscribe
   * @param operatorRole the role of people and tools
   * @return the SQL
   * @throws IllegalArgumentException if a name is blank, has control characters or is too long
   */
  public String grantsSql(String publisherRole, String subscriberRole, String operatorRole) {
    return new Grants(names)
        .closeFunction()
        .publisher(publisherRole)
        .subscriber(subscriberRole)
        .operator(operatorRole)
        .toString();
  }

  /**
   * Returns what a publisher needs beyond {@link #grantsSql} to cancel timers, as SQL: deleting
   * rows. Grant it only where timers are cancelled.
   *
   * @param publisherRole the role
   * @return the SQL
   * @throws IllegalArgumentException if the name is blank, has control characters or is too long
   */
  public String timerCancellationGrantsSql(String publisherRole) {
    return new Grants(names).timerCancellation(publisherRole).toString();
  }

  private Set<String> schemas() {
    return new LinkedHashSet<>(List.of(names.schema(), names.deadLetterSchema()));
  }
}
