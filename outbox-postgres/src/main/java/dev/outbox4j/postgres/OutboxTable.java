package dev.outbox4j.postgres;

import dev.outbox4j.internal.schema.Names;
import java.util.Objects;
import java.util.Optional;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/**
 * The names of one outbox: its table, the schema that holds it, and what is derived from them.
 * Immutable; two are equal if their names are.
 *
 * <p>A table's name may have 32 bytes, a schema's 63, which is what PostgreSQL keeps of an
 * identifier (<a
 * href="https://www.postgresql.org/docs/current/sql-syntax-lexical.html#SQL-SYNTAX-IDENTIFIERS">identifiers</a>).
 * A longer one is refused; nothing is truncated.
 */
public final class OutboxTable {
  /** The bytes PostgreSQL keeps of an identifier: {@value}. */
  public static final int MAX_IDENTIFIER_BYTES = Names.MAX_BYTES;

  /** The bytes that the name of an outbox table may have: {@value}. */
  public static final int MAX_TABLE_BYTES = Names.MAX_OUTBOX_BYTES;

  private final @Nullable String schema;
  private final String name;

  private OutboxTable(@Nullable String schema, String name) {
    this.schema = schema;
    this.name = name;
  }

  /**
   * Names a table that is found on the search path.
   *
   * @param name letters, digits, {@code _}, {@code -} and spaces, beginning with a letter or {@code
   *     _}; used exactly as given, so upper case counts
   * @return the table
   * @throws IllegalArgumentException if the name has other characters, or more than {@link
   *     #MAX_TABLE_BYTES} bytes
   */
  public static OutboxTable named(String name) {
    return new OutboxTable(null, withHint(name, () -> Names.requireOutbox("table name", name)));
  }

  /**
   * Returns the same table in a schema, which need not be on the search path.
   *
   * @param schema as for {@link #named}
   * @return the qualified table
   * @throws IllegalArgumentException if the name has other characters or is too long
   */
  public OutboxTable inSchema(String schema) {
    return new OutboxTable(requireIdentifier("schema name", schema), name);
  }

  /**
   * Checks a name by the rules of this class; for other tables of the outbox, such as the dead
   * letters.
   *
   * @param what the name's role, for the error text
   * @param name the name
   * @return the name
   * @throws IllegalArgumentException if it is not allowed
   */
  public static String requireIdentifier(String what, String name) {
    return withHint(name, () -> Names.requireIdentifier(what, name));
  }

  private static String withHint(String name, Supplier<String> checked) {
    try {
      return checked.get();
    } catch (IllegalArgumentException e) {
      throw name.indexOf('.') < 0
          ? e
          : new IllegalArgumentException(
              e.getMessage() + "; name the schema with inSchema(...)", e);
    }
  }

  /** {@return the schema, if one was named} */
  public Optional<String> schema() {
    return Optional.ofNullable(schema);
  }

  /** {@return the table's name without its schema} */
  public String name() {
    return name;
  }

  /** {@return the channel on which publishers notify: {@code outbox_<table>}} */
  public String channel() {
    return Names.channel(name);
  }

  /** {@return the name of the index that serves claims: {@code <table>_claim_idx}} */
  public String claimIndex() {
    return Names.claimIndex(name);
  }

  /** {@return the name of the unique index on timer ids: {@code <table>_timer_uq}} */
  public String timerIndex() {
    return Names.timerIndex(name);
  }

  /**
   * {@return the name of the table in which subscribers say that they sleep: {@code
   * <table>_sleepers}}
   */
  public String sleepersTable() {
    return Names.sleepers(name);
  }

  /** {@return the name of the SQL function that publishes: {@code <table>_publish}} */
  public String publishFunction() {
    return Names.publishFunction(name);
  }

  /** {@return the table's name, qualified and quoted, as it is written in a statement} */
  public String qualifiedName() {
    return qualify(name);
  }

  /** {@return the sleepers' name, qualified and quoted, as it is written in a statement} */
  public String qualifiedSleepers() {
    return qualify(sleepersTable());
  }

  private String qualify(String local) {
    return Names.qualified(schema, local);
  }

  @Override
  public boolean equals(Object other) {
    return other instanceof OutboxTable that
        && name.equals(that.name)
        && Objects.equals(schema, that.schema);
  }

  @Override
  public int hashCode() {
    return Objects.hash(schema, name);
  }

  @Override
  public String toString() {
    return schema == null ? name : schema + "." + name;
  }
}
