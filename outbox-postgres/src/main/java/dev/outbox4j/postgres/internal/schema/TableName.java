package dev.outbox4j.postgres.internal.schema;

import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;

/** A table's name; without a schema it is looked up on the search path. */
public record TableName(@Nullable String schema, String name) {
  private static final Pattern PLAIN = Pattern.compile("[a-z_][a-z0-9_]*");

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
    return PLAIN.matcher(name).matches() ? name : quoted(name);
  }

  static String quoted(String name) {
    return '"' + name.replace("\"", "\"\"") + '"';
  }
}
