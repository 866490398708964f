package dev.outbox4j.migrations;

import dev.outbox4j.internal.schema.Names;
import java.util.HashSet;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import javax.sql.DataSource;
import org.flywaydb.core.Flyway;
import org.flywaydb.core.api.configuration.FluentConfiguration;

/**
 * The migrations of one outbox: its table, the sleepers of its notification gate, and the function
 * that publishes from SQL; and of its dead-letter table, which has {@linkplain DeadLetterMigrations
 * a line of its own} and may be shared. Immutable.
 *
 * <p>There are three ways to apply them:
 *
 * <ul>
 *   <li>{@link #migrate}, one call for both lines. Each outbox and each dead-letter table keeps a
 *       history of its own, {@code <table>_schema_history}, so that several live in one schema, and
 *       beside the service's own migrations.
 *   <li>A Flyway of your own: {@link #configure} sets all of the above on it, and leaves you the
 *       rest (callbacks, lock retries, who installed). The dead letters take a second one: {@link
 *       DeadLetterMigrations#configure}.
 *   <li>Without Flyway at run time: {@link #sql()} is the whole SQL, for a file of your own, and
 *       {@link #sql(int, int)} what a later version adds.
 * </ul>
 *
 * <p>Names are used exactly as given, quoted, so upper case counts; they are checked here, and a
 * name that is too long is refused.
 */
public final class OutboxMigrations {
  /** The version to which these migrations bring an outbox: {@value}. */
  public static final int LATEST_VERSION = 1;

  private final String schema;
  private final String table;
  private final DeadLetterMigrations deadLetters;

  private OutboxMigrations(String schema, String table, DeadLetterMigrations deadLetters) {
    this.schema = schema;
    this.table = table;
    this.deadLetters = deadLetters;
  }

  /** {@return the migrations of {@code public.outbox} and {@code public.outbox_dlq}} */
  public static OutboxMigrations standard() {
    return of("public", "outbox");
  }

  /**
   * Returns the migrations of a table and of {@code <table>_dlq} beside it.
   *
   * @param schema the schema of both; created if it is missing
   * @param table the outbox table, at most 32 bytes: letters, digits, {@code _}, {@code -} and
   *     spaces, beginning with a letter or {@code _}
   * @return the migrations
   * @throws IllegalArgumentException if a name has other characters or is too long
   */
  public static OutboxMigrations of(String schema, String table) {
    Names.requireIdentifier("schema name", schema);
    Names.requireOutbox("table name", table);
    return new OutboxMigrations(
        schema, table, DeadLetterMigrations.of(schema, Names.deadLetters(table)));
  }

  /**
   * Returns the same with another dead-letter table. Several outboxes may name the same one.
   *
   * @param schema its schema; created if it is missing
   * @param table its name, at most 36 bytes, with the characters of the outbox's
   * @return the migrations
   * @throws IllegalArgumentException if a name is not allowed, or clashes with one of the outbox's
   */
  public OutboxMigrations deadLetters(String schema, String table) {
    DeadLetterMigrations others = DeadLetterMigrations.of(schema, table);
    if (this.schema.equals(schema)) {
      requireApart(this.table, table);
    }
    return new OutboxMigrations(this.schema, this.table, others.with(deadLetters.partitionedBy()));
  }

  /**
   * Returns the same with a dead-letter table that is {@linkplain
   * DeadLetterMigrations#partitionedBy(PartitionInterval) partitioned} by the time of failure.
   *
   * @param interval how much time a partition is for
   * @return the migrations
   */
  public OutboxMigrations partitionedDeadLetters(PartitionInterval interval) {
    return new OutboxMigrations(schema, table, deadLetters.partitionedBy(interval));
  }

  /** {@return the migrations of the dead-letter table} */
  public DeadLetterMigrations deadLetters() {
    return deadLetters;
  }

  private static void requireApart(String table, String deadLetterTable) {
    Set<String> clashes = new HashSet<>(Names.relationsOfDeadLetters(deadLetterTable));
    clashes.retainAll(Names.relationsOfOutbox(table));
    if (!clashes.isEmpty()) {
      throw new IllegalArgumentException(
          "dead-letter table name '%s' clashes with the outbox '%s' in the same schema: both need %s; choose another name"
              .formatted(deadLetterTable, table, clashes));
    }
  }

  /**
   * Applies what is missing, first of the dead letters and then of the outbox. Several processes
   * may call it at once: one applies, the others wait. A pool of one connection is enough. Connect
   * to the server itself and not through a pooler in transaction mode, since the lock belongs to
   * the session.
   *
   * @param dataSource connections of the tables' owner-to-be; it needs the right to create schemas
   *     only if one is missing
   * @return how many migrations were applied, of both lines; 0 if all were already
   * @throws org.flywaydb.core.api.FlywayException if a migration fails; nothing of it remains then
   */
  public int migrate(DataSource dataSource) {
    Objects.requireNonNull(dataSource, "dataSource");
    return deadLetters.migrate(dataSource)
        + Scripts.migrate(configure(Flyway.configure().dataSource(dataSource)));
  }

  /**
   * Sets location, schema, history table and placeholders on a Flyway configuration that is used
   * for this outbox alone. The dead letters are not part of it, see {@link #deadLetters()}.
   *
   * @param flyway the configuration, with its data source
   * @return the same
   */
  public FluentConfiguration configure(FluentConfiguration flyway) {
    return Scripts.OUTBOX.configure(flyway, schema, Names.history(table), placeholders());
  }

  /**
   * Returns all migrations of the outbox and of its dead letters as SQL, to be run once and in one
   * transaction, for teams whose migrations are run by something else. Schemas other than {@code
   * public} are created if they are missing. For an outbox that shares a dead-letter table which is
   * there already use {@link #sql(int, int)}.
   *
   * @return the SQL
   */
  public String sql() {
    return Scripts.createSchema(schema) + sql(0, LATEST_VERSION) + "\n" + deadLetters.sql();
  }

  /**
   * Returns some of the outbox's migrations as SQL, for teams that number their own: a file for
   * each release. Those of the dead letters are {@link DeadLetterMigrations#sql(int, int)}.
   *
   * @param fromVersion the version that the outbox has; 0 if there is none yet
   * @param toVersion the version that it is to have, at most {@link #LATEST_VERSION}
   * @return the SQL; it creates no schema
   * @throws IllegalArgumentException if there are no such versions
   */
  public String sql(int fromVersion, int toVersion) {
    return Scripts.OUTBOX.sql(fromVersion, toVersion, placeholders());
  }

  /**
   * Returns the least-privilege grants of three existing roles as SQL, for the tables' owner to run
   * after the migration. One role may have several of the parts.
   *
   * <ul>
   *   <li>The publisher inserts messages and sees no payload.
   *   <li>The subscriber claims, settles and dead-letters; it cannot publish, change a message, nor
   *       read dead letters.
   *   <li>The operator looks at the queue, and browses, redrives, resolves and purges dead letters;
   *       it cannot change what they hold.
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
    return new Grants(schema, table, deadLetters)
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
    return new Grants(schema, table, deadLetters).timerCancellation(publisherRole).toString();
  }

  /**
   * Returns what a publisher needs beyond {@link #grantsSql} to publish with {@code
   * IfLive.REPLACE}, as SQL: updating and reading messages. Grant it only where timers are
   * replaced.
   *
   * @param publisherRole the role
   * @return the SQL
   * @throws IllegalArgumentException if the name is blank, has control characters or is too long
   */
  public String timerReplacementGrantsSql(String publisherRole) {
    return new Grants(schema, table, deadLetters).timerReplacement(publisherRole).toString();
  }

  private Map<String, String> placeholders() {
    return Map.of("outbox_schema", schema, "outbox_table", table);
  }
}
