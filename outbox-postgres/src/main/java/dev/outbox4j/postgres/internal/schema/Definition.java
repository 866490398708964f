package dev.outbox4j.postgres.internal.schema;

import dev.outbox4j.internal.schema.Index;
import java.util.List;
import org.jspecify.annotations.Nullable;

/** Words for indexes, the same for expected and found. */
final class Definition {
  private Definition() {}

  static String of(boolean unique, boolean primary, List<String> keys, @Nullable String predicate) {
    String kind = primary ? "primary key" : unique ? "unique index" : "index";
    return kind
        + " ("
        + String.join(", ", keys)
        + ")"
        + (predicate == null ? "" : " where " + predicate);
  }

  static String of(Index index) {
    return of(index.unique(), index.primary(), index.keys(), index.predicate());
  }

  static String label(Index index) {
    return (index.primary() ? "primary key " : "index ") + columns(index);
  }

  /** The statement that makes it. */
  static String create(Index index, TableName table) {
    if (index.primary()) {
      return "alter table " + table.sql() + " add primary key " + columns(index);
    }
    return "create "
        + (index.unique() ? "unique " : "")
        + "index concurrently on "
        + table.sql()
        + " "
        + columns(index)
        + (index.predicate() == null ? "" : " where " + index.predicate());
  }

  private static String columns(Index index) {
    return "(" + String.join(", ", index.keys()) + ")";
  }
}
