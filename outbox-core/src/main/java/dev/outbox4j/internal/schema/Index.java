package dev.outbox4j.internal.schema;

import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * An index, recognised by what it is and not by its name.
 *
 * @param keys its key columns, in order
 * @param unique whether it refuses duplicates
 * @param primary whether it is the primary key
 * @param predicate which rows it holds, as PostgreSQL prints it; null for all
 */
public record Index(
    List<String> keys, boolean unique, boolean primary, @Nullable String predicate) {

  /** Copies the list. */
  public Index {
    keys = List.copyOf(keys);
  }

  static Index primaryKey(String... keys) {
    return new Index(List.of(keys), true, true, null);
  }

  static Index plain(String... keys) {
    return new Index(List.of(keys), false, false, null);
  }

  static Index unique(String... keys) {
    return new Index(List.of(keys), true, false, null);
  }

  Index where(String rows) {
    return new Index(keys, unique, primary, rows);
  }

  Index uniqueWhere(String rows) {
    return new Index(keys, true, false, rows);
  }
}
