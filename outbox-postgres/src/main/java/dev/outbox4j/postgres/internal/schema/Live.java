package dev.outbox4j.postgres.internal.schema;

import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/** What the catalog says. */
final class Live {
  private Live() {}

  /** The session, and every relation that has one of the names asked for, in whatever schema. */
  record Relations(Session session, List<Relation> all) {}

  /** What holds for the session that asks. */
  record Session(
      String user, String searchPath, int serverVersion, boolean readOnly, boolean inRecovery) {}

  record Relation(
      long oid,
      TableName name,
      String kind,
      String persistence,
      boolean visible,
      boolean schemaUsable,
      @Nullable String comment) {

    boolean table() {
      return kind.equals("r") || kind.equals("p");
    }

    boolean partitioned() {
      return kind.equals("p");
    }
  }

  /** A collation is null if it is the type's own. */
  record Column(
      String name,
      String type,
      @Nullable String collation,
      boolean notNull,
      boolean generated,
      @Nullable String value) {

    /** These two compare bytes, whatever the operating system. */
    boolean byteOrder() {
      return "C".equals(collation) || "POSIX".equals(collation);
    }

    String declaredType() {
      return type + (collation == null ? "" : " collate \"" + collation + "\"");
    }

    /** The default in words. */
    String defaultText() {
      return value == null ? "no default" : generated ? value : "default " + value;
    }
  }

  /** Mentions are columns of the table and where the index has them, in the same order. */
  record Index(
      long root,
      TableName name,
      boolean ofPartition,
      boolean attached,
      boolean unique,
      boolean primary,
      boolean immediate,
      boolean valid,
      String method,
      List<String> keys,
      @Nullable String predicate,
      List<String> mentionedColumns,
      List<String> mentionedPlaces) {

    String definition() {
      return Definition.of(unique, primary, keys, predicate)
          + (method.equals("btree") ? "" : " using " + method)
          + (immediate ? "" : " deferrable");
    }
  }

  record Storage(TableName table, String persistence, Map<String, String> options) {}

  /** A trigger, rule or constraint that is not ours; {@code definition} as PostgreSQL prints it. */
  record Obstacle(long table, String kind, String name, TableName on, String definition) {}

  /** What hides rows of a table or has no place for them. */
  record Gaps(long table, boolean rowsHidden, List<TableName> withoutDefault) {}
}
