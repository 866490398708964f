package dev.outbox4j.postgres.internal.schema;

import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/** What the catalog says. */
final class Live {
  private Live() {}

  /** The session, and every relation that has one of the names asked for, in whatever schema. */
  record Relations(String user, String searchPath, List<Relation> all) {}

  record Relation(
      long oid,
      TableName name,
      String kind,
      String persistence,
      boolean visible,
      boolean schemaUsable) {

    boolean table() {
      return kind.equals("r") || kind.equals("p");
    }

    boolean partitioned() {
      return kind.equals("p");
    }
  }

  record Column(
      String name, String type, boolean notNull, boolean generated, @Nullable String value) {

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
}
