package dev.outbox4j.postgres;

import java.nio.charset.StandardCharsets;
import java.util.Comparator;
import java.util.List;
import java.util.Objects;
import java.util.Optional;
import java.util.regex.Pattern;
import org.jooq.Name;
import org.jooq.impl.DSL;
import org.jspecify.annotations.Nullable;

/**
 * The names of one outbox: its table, the schema that holds it, and what is derived from them.
 * Immutable; two are equal if their names are.
 *
 * <p>A name is refused if it, or a name derived from it, is longer than the 63 bytes that
 * PostgreSQL keeps of an identifier (<a
 * href="https://www.postgresql.org/docs/current/sql-syntax-lexical.html#SQL-SYNTAX-IDENTIFIERS">identifiers</a>);
 * nothing is truncated.
 */
public final class OutboxTable {
  /** The bytes PostgreSQL keeps of an identifier: {@value}. */
  public static final int MAX_IDENTIFIER_BYTES = 63;

  private static final Pattern ALLOWED = Pattern.compile("[\\p{L}_][\\p{L}\\p{N}_ -]*");

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
   * @throws IllegalArgumentException if the name has other characters, or a name derived from it is
   *     too long
   */
  public static OutboxTable named(String name) {
    requireIdentifier("table name", name);
    OutboxTable table = new OutboxTable(null, name);
    String longest =
        table.derivedNames().stream()
            .max(Comparator.comparingInt(OutboxTable::bytes))
            .orElseThrow();
    if (bytes(longest) > MAX_IDENTIFIER_BYTES) {
      throw new IllegalArgumentException(
          "table name '%s' is too long: '%s', derived from it, is %d bytes long and PostgreSQL keeps %d; shorten it by %d bytes"
              .formatted(
                  name,
                  longest,
                  bytes(longest),
                  MAX_IDENTIFIER_BYTES,
                  bytes(longest) - MAX_IDENTIFIER_BYTES));
    }
    return table;
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
    Objects.requireNonNull(name, what);
    if (!ALLOWED.matcher(name).matches()) {
      throw new IllegalArgumentException(
          what
              + " '"
              + name.replaceAll("\\p{Cntrl}", "?")
              + "' is not allowed: use letters, digits, _, - and spaces, beginning with a letter or _"
              + (name.indexOf('.') >= 0 ? "; name the schema with inSchema(...)" : ""));
    }
    if (bytes(name) > MAX_IDENTIFIER_BYTES) {
      throw new IllegalArgumentException(
          "%s '%s' is %d bytes long and PostgreSQL keeps %d; shorten it"
              .formatted(what, name, bytes(name), MAX_IDENTIFIER_BYTES));
    }
    return name;
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
    return "outbox_" + name;
  }

  /** {@return the name of the index that serves claims: {@code <table>_claim_idx}} */
  public String claimIndex() {
    return name + "_claim_idx";
  }

  /** {@return the name of the unique index on timer ids: {@code <table>_timer_uq}} */
  public String timerIndex() {
    return name + "_timer_uq";
  }

  /**
   * {@return the name of the table in which subscribers say that they sleep: {@code
   * <table>_sleepers}}
   */
  public String sleepersTable() {
    return name + "_sleepers";
  }

  /** {@return the name of the SQL function that publishes: {@code <table>_publish}} */
  public String publishFunction() {
    return name + "_publish";
  }

  /** {@return the table's qualified name, for jOOQ to quote} */
  public Name qualifiedName() {
    return qualify(name);
  }

  /** {@return the sleepers' qualified name, for jOOQ to quote} */
  public Name qualifiedSleepers() {
    return qualify(sleepersTable());
  }

  private Name qualify(String local) {
    return schema == null ? DSL.quotedName(local) : DSL.quotedName(schema, local);
  }

  private List<String> derivedNames() {
    return List.of(
        channel(),
        claimIndex(),
        timerIndex(),
        sleepersTable(),
        sleepersTable() + "_pkey",
        publishFunction(),
        name + "_schema_history_s_idx"); // an index that Flyway makes for its history table
  }

  private static int bytes(String name) {
    return name.getBytes(StandardCharsets.UTF_8).length;
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
