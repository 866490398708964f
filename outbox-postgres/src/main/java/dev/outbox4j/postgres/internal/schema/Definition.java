package dev.outbox4j.postgres.internal.schema;

import java.util.List;
import org.jspecify.annotations.Nullable;

/** Words for an index's definition, the same for expected and found. */
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
}
