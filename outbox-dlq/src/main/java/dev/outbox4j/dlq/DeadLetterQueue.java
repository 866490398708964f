package dev.outbox4j.dlq;

import dev.outbox4j.internal.schema.Names;
import dev.outbox4j.postgres.OutboxTable;
import dev.outbox4j.postgres.PostgresStore;
import dev.outbox4j.spi.DeadLetterWriter;
import dev.outbox4j.spi.DeadLetters;
import dev.outbox4j.spi.OutboxStore;
import java.util.Objects;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/**
 * A dead-letter table, to which a subscriber moves the rows that failed for good. Immutable; one
 * object may serve many subscribers and many outboxes of one database: each dead letter names the
 * outbox it came from.
 *
 * <p>A row is deleted from the outbox and inserted here by one statement, so it is in exactly one
 * of the two tables whatever happens. If the insert fails, the row stays in the outbox under its
 * lease and is tried again.
 */
public final class DeadLetterQueue implements DeadLetters {
  private final @Nullable String schema;
  private final String table;

  private DeadLetterQueue(@Nullable String schema, String table) {
    this.schema = schema;
    this.table = table;
  }

  /**
   * Names a table beside the outbox: in the outbox's schema if that was named, else on the search
   * path.
   *
   * @param table its name, at most 36 bytes, else by the rules of {@link OutboxTable#named}
   * @return the dead letters
   * @throws IllegalArgumentException if the name is not allowed, or has more than 36 bytes
   */
  public static DeadLetterQueue in(String table) {
    return new DeadLetterQueue(null, requireTable(table));
  }

  /**
   * Names a table in a schema of its own, which need not be on the search path.
   *
   * @param schema the schema, by the rules of {@link OutboxTable#named}
   * @param table the table, by the same rules
   * @return the dead letters
   * @throws IllegalArgumentException if a name is not allowed, or the table's has more than 36
   *     bytes
   */
  public static DeadLetterQueue in(String schema, String table) {
    return new DeadLetterQueue(
        OutboxTable.requireIdentifier("dead-letter schema name", schema), requireTable(table));
  }

  /** {@return the table's name without its schema} */
  public String table() {
    return table;
  }

  /** {@return the schema, if one was named} */
  public Optional<String> schema() {
    return Optional.ofNullable(schema);
  }

  /**
   * Returns the writer for a store. Does no I/O.
   *
   * @param store a store made by {@code PostgresOutbox.on(...).store()}, or another {@link
   *     PostgresStore}
   * @return the writer; it borrows a connection of the store's pool for one statement at a time
   * @throws IllegalArgumentException if the store is not on PostgreSQL, or its table is the
   *     dead-letter table itself
   */
  @Override
  public DeadLetterWriter bind(OutboxStore store) {
    Objects.requireNonNull(store, "store");
    if (!(store instanceof PostgresStore postgres)) {
      throw new IllegalArgumentException(
          "Dead letters in table '"
              + this
              + "' need a store on PostgreSQL, and this one is a "
              + store.getClass().getName()
              + "; use PostgresOutbox.on(...).store(), or the dead letters that come with that store");
    }
    String inSchema = schema != null ? schema : postgres.table().schema().orElse(null);
    String deadLetters = Names.qualified(inSchema, table);
    if (deadLetters.equals(postgres.table().qualifiedName())) {
      throw new IllegalArgumentException(
          "The dead-letter table '" + this + "' is the outbox itself; name another table");
    }
    return new JdbcDeadLetterWriter(
        postgres, inSchema == null ? table : inSchema + "." + table, deadLetters);
  }

  private static String requireTable(String table) {
    return Names.requireDeadLetters("dead-letter table name", table);
  }

  @Override
  public boolean equals(Object other) {
    return other instanceof DeadLetterQueue that
        && table.equals(that.table)
        && Objects.equals(schema, that.schema);
  }

  @Override
  public int hashCode() {
    return Objects.hash(schema, table);
  }

  @Override
  public String toString() {
    return schema == null ? table : schema + "." + table;
  }
}
