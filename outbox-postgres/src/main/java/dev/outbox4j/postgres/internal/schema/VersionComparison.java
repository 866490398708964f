package dev.outbox4j.postgres.internal.schema;

import dev.outbox4j.internal.schema.Layout;
import dev.outbox4j.postgres.SchemaFault;
import dev.outbox4j.postgres.internal.schema.Live.Relation;
import java.util.List;
import java.util.OptionalInt;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;

/**
 * Compares the version that a table's comment tells. A newer one is no fault: migrations are
 * applied before the processes that need them are deployed, and what they take away is found
 * missing.
 */
final class VersionComparison {
  private static final Pattern STAMP = Pattern.compile("outbox4j schema (\\d{1,9})");

  private final List<SchemaFault> faults;

  VersionComparison(List<SchemaFault> faults) {
    this.faults = faults;
  }

  void compare(Layout expected, Relation table) {
    OptionalInt found = versionIn(table.comment());
    if (found.isEmpty()) {
      faults.add(
          new SchemaFault(
              "schema version of " + table.name().label(),
              String.valueOf(expected.version()),
              "none in the table's comment",
              "apply the migrations; if all else is right: comment on table %s is '%s'"
                  .formatted(table.name().sql(), Layout.stamp(expected.version()))));
    } else if (found.getAsInt() < expected.version()) {
      faults.add(
          new SchemaFault(
              "schema version of " + table.name().label(),
              String.valueOf(expected.version()),
              String.valueOf(found.getAsInt()),
              "apply the migrations of this version of the library"));
    }
  }

  /** Reads the version out of a comment or a function's body. */
  static OptionalInt versionIn(@Nullable String text) {
    Matcher stamp = STAMP.matcher(text == null ? "" : text);
    return stamp.find() ? OptionalInt.of(Integer.parseInt(stamp.group(1))) : OptionalInt.empty();
  }
}
