package dev.outbox4j.migrations;

import dev.outbox4j.OutboxException;
import dev.outbox4j.internal.schema.Names;
import java.util.Map;
import java.util.Objects;
import javax.sql.DataSource;
import org.flywaydb.core.Flyway;
import org.flywaydb.core.api.configuration.FluentConfiguration;
import org.jspecify.annotations.Nullable;

/**
 * The migrations of one dead-letter table. They have a history of their own, {@code
 * <table>_schema_history}, so that several outboxes can share the table. Immutable; two are equal
 * if their names and intervals are.
 *
 * <p>{@link OutboxMigrations#migrate} applies them as well. Use this class for a dead-letter table
 * that another role owns, or with a Flyway of your own.
 *
 * @param schema the schema of the table
 * @param table the table's name
 * @param partitionedBy the interval of its partitions; null to leave the table as it is
 */
public record DeadLetterMigrations(
    String schema, String table, @Nullable PartitionInterval partitionedBy) {
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
    return new DeadLetterMigrations(schema, table, null);
  }

  /**
   * Returns the same for a table that is partitioned by {@code failed_at}. {@link #migrate} makes
   * it so, whether it is new or has letters: what it holds becomes its first partition, {@code
   * <table>_first}, and is not copied. It can be written to meanwhile; the lock that it takes at
   * last is for some changes of the catalog. The coming partitions are created, and old ones
   * dropped, by {@code DeadLetterRetention}; until then {@code <table>_default} takes what no other
   * one does.
   *
   * @param interval how much time a partition is for
   * @return the same with partitions
   */
  public DeadLetterMigrations partitionedBy(PartitionInterval interval) {
    return new DeadLetterMigrations(schema, table, Objects.requireNonNull(interval, "interval"));
  }

  DeadLetterMigrations with(@Nullable PartitionInterval interval) {
    return new DeadLetterMigrations(schema, table, interval);
  }

  /**
   * Applies what is missing; see {@link OutboxMigrations#migrate} for the connections it needs.
   *
   * @param dataSource connections of the table's owner-to-be
   * @return how many migrations were applied, and one more if the table was partitioned by this
   *     call; 0 if all were already
   * @throws org.flywaydb.core.api.FlywayException if a migration fails; nothing of it remains then
   * @throws OutboxException if the table cannot be partitioned: what hangs on it would not be true
   *     of new letters, such as a trigger; it has another interval; or a lock was not had in about
   *     two minutes
   */
  public int migrate(DataSource dataSource) {
    Objects.requireNonNull(dataSource, "dataSource");
    int applied = Scripts.migrate(configure(Flyway.configure().dataSource(dataSource)));
    return partitionedBy != null && Partitioning.partition(dataSource, this, partitionedBy.period())
        ? applied + 1
        : applied;
  }

  /**
   * Makes a partitioned table a plain one again. It copies every letter in one transaction:
   * meanwhile letters can be looked at, and none is written, changed or deleted. Subscribers keep
   * what they cannot write, and write it afterwards. So delete first what you do not need.
   *
   * @param dataSource connections of the table's owner, without a limit of the time that a
   *     statement or an answer may take
   * @return whether it was partitioned
   * @throws OutboxException if it fails; the table is as it was then
   */
  public boolean unpartition(DataSource dataSource) {
    return Partitioning.unpartition(Objects.requireNonNull(dataSource, "dataSource"), this);
  }

  /**
   * Sets location, schema, history table and placeholders on a Flyway configuration that is used
   * for this dead-letter table alone. Partitions are not part of it, see {@link #partitionSql}.
   *
   * @param flyway the configuration, with its data source
   * @return the same
   */
  public FluentConfiguration configure(FluentConfiguration flyway) {
    return Scripts.DEAD_LETTERS.configure(flyway, schema, Names.history(table), placeholders());
  }

  /**
   * Returns all migrations as SQL, to be run once and in one transaction, with those that partition
   * the table if it has an interval. A schema other than {@code public} is created if it is
   * missing.
   *
   * @return the SQL
   */
  public String sql() {
    return Scripts.createSchema(schema)
        + sql(0, LATEST_VERSION)
        + (partitionedBy == null ? "" : "\n" + partitionSql());
  }

  /**
   * Returns what partitions the table, as SQL for one transaction, for teams that number their own
   * migrations. It does nothing to a table that is partitioned. Of a table with letters it reads
   * all, and nobody writes to it meanwhile: for such a one {@link #migrate} is better.
   *
   * @return the SQL
   * @throws IllegalStateException if no interval was given
   */
  public String partitionSql() {
    if (partitionedBy == null) {
      throw new IllegalStateException(
          "There is no interval for partitions of '%s'; give it by partitionedBy(...)"
              .formatted(table));
    }
    return Partitioning.sql(this, partitionedBy.period());
  }

  /**
   * Returns what {@link #unpartition} does, as SQL for one transaction.
   *
   * @return the SQL; it does nothing to a plain table
   */
  public String unpartitionSql() {
    return Partitioning.plainSql(this);
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

  Map<String, String> placeholders() {
    return Map.of("outbox_dlq_schema", schema, "outbox_dlq_table", table);
  }
}
