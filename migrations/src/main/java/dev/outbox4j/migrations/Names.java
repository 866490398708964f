package dev.outbox4j.migrations;

import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashSet;
import java.util.List;
import java.util.Objects;
import java.util.Set;
import java.util.regex.Pattern;

/** The names of one outbox, checked before any of them becomes part of a statement. */
record Names(String schema, String table, String deadLetterSchema, String deadLetterTable) {
  static final int MAX_BYTES = 63;

  private static final Pattern ALLOWED = Pattern.compile("[\\p{L}_][\\p{L}\\p{N}_ -]*");

  Names {
    requireAllowed("schema name", schema);
    requireAllowed("table name", table);
    requireAllowed("dead-letter schema name", deadLetterSchema);
    requireAllowed("dead-letter table name", deadLetterTable);
    requireShort("schema name", schema, List.of(schema));
    requireShort("table name", table, derivedFrom(table));
    requireShort("dead-letter schema name", deadLetterSchema, List.of(deadLetterSchema));
    requireShort(
        "dead-letter table name", deadLetterTable, derivedFromDeadLetters(deadLetterTable));
    if (schema.equals(deadLetterSchema)) {
      requireApart(table, deadLetterTable);
    }
  }

  String historyTable() {
    return table + "_schema_history";
  }

  String deadLetterName() {
    return quoted(deadLetterSchema) + "." + quoted(deadLetterTable);
  }

  String qualified(String local) {
    return quoted(schema) + "." + quoted(local);
  }

  static String quoted(String name) {
    return '"' + name.replace("\"", "\"\"") + '"';
  }

  private static List<String> derivedFrom(String table) {
    List<String> derived = new ArrayList<>(relationsOf(table));
    derived.add("outbox_" + table);
    derived.add(table + "_publish");
    return derived;
  }

  private static List<String> relationsOf(String table) {
    return List.of(
        table,
        table + "_pkey",
        table + "_claim_idx",
        table + "_timer_uq",
        table + "_sleepers",
        table + "_sleepers_pkey",
        table + "_schema_history",
        // what Flyway derives for its history
        table + "_schema_history_pk",
        table + "_schema_history_s_idx");
  }

  private static List<String> derivedFromDeadLetters(String table) {
    return List.of(table + "_pkey", table + "_queue_failed_idx");
  }

  private static void requireAllowed(String what, String name) {
    Objects.requireNonNull(name, what);
    if (!ALLOWED.matcher(name).matches()) {
      throw new IllegalArgumentException(
          "%s '%s' is not allowed: use letters, digits, _, - and spaces, beginning with a letter or _"
              .formatted(what, name.replaceAll("\\p{Cntrl}", "?")));
    }
  }

  private static void requireShort(String what, String name, List<String> derived) {
    String longest = derived.stream().max(Comparator.comparingInt(Names::bytes)).orElseThrow();
    int excess = bytes(longest) - MAX_BYTES;
    if (excess > 0) {
      throw new IllegalArgumentException(
          "%s '%s' is too long: %s is %d bytes long and PostgreSQL keeps %d; shorten it by %d bytes"
              .formatted(
                  what,
                  name,
                  longest.equals(name) ? "it" : "'" + longest + "', derived from it,",
                  bytes(longest),
                  MAX_BYTES,
                  excess));
    }
  }

  /** Tables and indexes of a schema share one name space. */
  private static void requireApart(String table, String deadLetterTable) {
    Set<String> taken = new HashSet<>(relationsOf(table));
    Set<String> wanted = new HashSet<>(derivedFromDeadLetters(deadLetterTable));
    wanted.add(deadLetterTable);
    wanted.retainAll(taken);
    if (!wanted.isEmpty()) {
      throw new IllegalArgumentException(
          "dead-letter table name '%s' clashes with the outbox '%s' in the same schema: both need %s; choose another name"
              .formatted(deadLetterTable, table, wanted));
    }
  }

  static int bytes(String name) {
    return name.getBytes(StandardCharsets.UTF_8).length;
  }
}
