package dev.outbox4j.postgres.internal.schema;

import dev.outbox4j.internal.schema.Names;
import org.jspecify.annotations.Nullable;

/** A table's name; without a schema it is looked up on the search path. */
public record TableName(@Nullable String schema, String name) {
  /** For people: quoted only where it must be. */
  String label() {
    return schema == null ? plain(name) : plain(schema) + "." + plain(name);
  }

  /** For statements: always quoted. */
  String sql() {
    return schema == null ? quoted(name) : quoted(schema) + "." + quoted(name);
  }

  TableName sibling(String name) {
    return new TableName(schema, name);
  }

  static String plain(String name) {
    return Names.plain(name);
  }

  static String quoted(String name) {
    return Names.quoted(name);
  }
}
