package dev.outbox4j.poller;

import dev.outbox4j.poller.internal.Checks;
import java.util.List;
import java.util.Optional;

/**
 * Where rows come from: a table, or a query. Immutable.
 *
 * <p>Of a table the catalog tells whether the key is unique and not null. Of a query nothing does:
 * the names, the types and the collations of its columns are checked, and at the start that no
 * cursor and no key is null; that the key is unique is the query's duty.
 */
public final class Source {
  private final Optional<String> schema;
  private final String name;
  private final Optional<String> query;
  private final List<String> key;

  private Source(Optional<String> schema, String name, Optional<String> query, List<String> key) {
    this.schema = schema;
    this.name = name;
    this.query = query;
    this.key = List.copyOf(key);
  }

  /**
   * Names a table by its schema and name, both exactly as the catalog has them; they are quoted.
   * Ordinary and partitioned tables are allowed.
   *
   * @param schema the schema
   * @param table the table
   * @return the source, whose key is the primary key
   * @throws IllegalArgumentException if a name is blank, has a NUL, or is longer than 63 bytes
   */
  public static Source table(String schema, String table) {
    return new Source(
        Optional.of(Checks.identifier("schema", schema)),
        Checks.identifier("table", table),
        Optional.empty(),
        List.of());
  }

  /**
   * Names a table on the search path of the source's connections, exactly as the catalog has it.
   *
   * @param table the table, without a schema
   * @return the source, whose key is the primary key
   * @throws IllegalArgumentException if the name is blank, has a NUL, or is longer than 63 bytes
   */
  public static Source table(String table) {
    return new Source(
        Optional.empty(), Checks.identifier("table", table), Optional.empty(), List.of());
  }

  /**
   * Gives a query as the source, for example a join. It is read as {@code from (query)}, so it must
   * be one {@code select} without parameters, and is planned with the cursor's condition: what
   * keeps that from the tables below, such as {@code group by} or {@code limit}, makes each look
   * read all. It must not depend on the session, such as on its time zone.
   *
   * @param name what to call it; it is a part of event ids
   * @param sql the query
   * @param key the columns that together tell its rows apart, at least one
   * @return the source
   * @throws IllegalArgumentException if the query is blank or has a NUL, or a name is not allowed
   */
  public static Source query(String name, String sql, String... key) {
    return new Source(
        Optional.empty(),
        Checks.identifier("query name", name),
        Optional.of(Checks.sql("query", sql)),
        Checks.identifiers("key", List.of(key)));
  }

  /**
   * Sets the key of a table, in whose order rows of the same cursor are read.
   *
   * @param columns columns that are {@code not null} and together unique, at least one; default is
   *     the primary key
   * @return a source that differs in this
   * @throws IllegalArgumentException if there is none, or one twice
   */
  public Source key(String... columns) {
    return new Source(schema, name, query, Checks.identifiers("key", List.of(columns)));
  }

  /** {@return the schema of a table, if one was named} */
  public Optional<String> schema() {
    return schema;
  }

  /** {@return the name of the table or the query} */
  public String name() {
    return name;
  }

  /** {@return the text of a query; empty for a table} */
  public Optional<String> sql() {
    return query;
  }

  /** {@return the columns of the key; empty for the primary key} */
  public List<String> key() {
    return key;
  }

  @Override
  public String toString() {
    return schema.map(in -> in + ".").orElse("") + name;
  }
}
