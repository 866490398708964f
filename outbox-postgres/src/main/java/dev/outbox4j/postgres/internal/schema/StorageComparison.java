package dev.outbox4j.postgres.internal.schema;

import dev.outbox4j.internal.schema.Layout;
import dev.outbox4j.internal.schema.Setting;
import dev.outbox4j.postgres.SchemaFault;
import java.util.List;
import java.util.Locale;

/** Compares storage settings; those of a partitioned table are its partitions'. */
final class StorageComparison {
  private final Layout expected;
  private final List<SchemaFault> faults;

  StorageComparison(Layout expected, List<SchemaFault> faults) {
    this.expected = expected;
    this.faults = faults;
  }

  void compare(List<Live.Storage> tables) {
    for (Live.Storage table : tables) {
      for (Setting setting : expected.settings()) {
        compare(table, setting);
      }
      if (off(table.options().getOrDefault("autovacuum_enabled", "on"))) {
        faults.add(
            new SchemaFault(
                label(table, "autovacuum_enabled"),
                "autovacuum to run",
                "autovacuum switched off",
                "alter table " + table.table().sql() + " reset (autovacuum_enabled)"));
      }
      if (!expected.logged() && !table.persistence().equals("u")) {
        faults.add(
            new SchemaFault(
                "table " + table.table().label(),
                "an unlogged table",
                "a logged one: each time a subscriber falls asleep is written to the WAL",
                "alter table " + table.table().sql() + " set unlogged"));
      }
    }
  }

  private void compare(Live.Storage table, Setting setting) {
    String found = table.options().get(setting.name());
    boolean right =
        found != null
            && (setting.mustBeOff()
                ? off(found)
                : within(found, Double.parseDouble(setting.value())));
    if (!right) {
      boolean upTo = !setting.mustBeOff() && !setting.value().equals("0");
      faults.add(
          new SchemaFault(
              label(table, setting.name()),
              setting.value() + (upTo ? " or less" : ""),
              found == null ? "not set" : found,
              "alter table %s set (%s = %s)"
                  .formatted(table.table().sql(), setting.name(), setting.value())));
    }
  }

  /** Negative values mean that the server's setting holds. */
  private static boolean within(String found, double atMost) {
    double value = Double.parseDouble(found);
    return value >= 0 && value <= atMost;
  }

  /** Booleans are kept as they were written. */
  private static boolean off(String value) {
    String lower = value.toLowerCase(Locale.ROOT);
    return lower.startsWith("f")
        || lower.startsWith("n")
        || lower.startsWith("of")
        || lower.equals("0");
  }

  private static String label(Live.Storage table, String setting) {
    return "storage setting " + setting + " of " + table.table().label();
  }
}
