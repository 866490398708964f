package dev.outbox4j.poller.internal;

import dev.outbox4j.internal.schema.Names;
import java.util.List;
import java.util.stream.Collectors;

/** Writes identifiers of sources. */
final class Quoting {
  private Quoting() {}

  static String column(String name) {
    return "s." + Names.quoted(name);
  }

  static String columns(List<String> names) {
    return names.stream().map(Quoting::column).collect(Collectors.joining(", "));
  }

  static String table(String schema, String name) {
    return Names.quoted(schema) + "." + Names.quoted(name);
  }

  /** A line comment at the end of a query hides nothing of what follows. */
  static String query(String sql) {
    return "(\n" + sql + "\n)";
  }
}
