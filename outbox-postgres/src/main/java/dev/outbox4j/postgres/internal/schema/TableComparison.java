package dev.outbox4j.postgres.internal.schema;

import dev.outbox4j.internal.schema.Column;
import dev.outbox4j.internal.schema.Index;
import dev.outbox4j.internal.schema.Layout;
import dev.outbox4j.postgres.SchemaFault;
import dev.outbox4j.postgres.internal.schema.Live.Relation;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.stream.Collectors;

/** Compares one table's columns and indexes. */
final class TableComparison {
  private final Layout expected;
  private final Relation table;
  private final List<SchemaFault> faults;

  TableComparison(Layout expected, Relation table, List<SchemaFault> faults) {
    this.expected = expected;
    this.table = table;
    this.faults = faults;
  }

  void compareColumns(Map<String, Live.Column> live) {
    Set<String> known = new HashSet<>();
    for (Column column : expected.columns()) {
      known.add(column.name());
      Live.Column found = live.get(column.name());
      if (found == null) {
        fault(
            label(column.name()),
            column.definition(),
            "no such column",
            alter("add column " + column.definition()));
      } else {
        compareColumn(column, found);
      }
    }
    for (Live.Column extra : live.values()) {
      if (!known.contains(extra.name()) && extra.notNull() && extra.value() == null) {
        fault(
            label(extra.name()),
            "a column of your own to be nullable or to have a default, since inserts do not name it",
            "not null without default",
            change(extra.name(), "drop not null") + ", or set a default");
      }
    }
  }

  private void compareColumn(Column column, Live.Column found) {
    if (!found.type().equals(column.type()) || (column.byteOrder() && !found.byteOrder())) {
      fault(
          label(column.name()),
          "type " + column.declaredType(),
          "type " + (column.byteOrder() ? found.declaredType() : found.type()),
          change(column.name(), "type " + column.declaredType()));
    }
    if (found.notNull() != column.notNull()) {
      fault(
          label(column.name()),
          nullability(column.notNull()),
          nullability(found.notNull()),
          change(column.name(), (column.notNull() ? "set" : "drop") + " not null"));
    }
    compareDefault(column, found);
  }

  private void compareDefault(Column column, Live.Column found) {
    String value = found.value();
    if (column.identity()) {
      boolean numbered =
          value != null
              && !found.generated()
              && (value.endsWith(" as identity") || value.startsWith("nextval("));
      if (!numbered) {
        fault(
            label(column.name()),
            Column.IDENTITY,
            found.defaultText(),
            value == null
                ? change(column.name(), "add " + Column.IDENTITY)
                : "replace it by an identity column");
      }
    } else if (column.defaults().isEmpty() ? value != null : !isOneOf(column, found)) {
      fault(
          label(column.name()),
          column.defaults().isEmpty() ? "no default" : "default " + column.defaults().get(0),
          found.defaultText(),
          found.generated() || (value != null && value.endsWith(" as identity"))
              ? "replace it by an ordinary column"
              : change(
                  column.name(),
                  column.defaults().isEmpty()
                      ? "drop default"
                      : "set default " + column.defaults().get(0)));
    }
  }

  private static boolean isOneOf(Column column, Live.Column found) {
    return !found.generated() && found.value() != null && column.defaults().contains(found.value());
  }

  void compareIndexes(List<Live.Index> live) {
    List<Live.Index> own =
        live.stream().filter(index -> index.root() == table.oid() && !index.ofPartition()).toList();
    for (Index index : expected.indexes()) {
      List<Live.Index> same =
          own.stream().filter(candidate -> satisfies(candidate, index)).toList();
      if (same.isEmpty()) {
        fault(
            Definition.label(index) + " of " + table.name().label(),
            Definition.of(index),
            nearest(index, own),
            Definition.create(index, table.name()));
      } else if (same.stream().noneMatch(Live.Index::valid)) {
        Live.Index broken = same.get(0);
        fault(
            indexLabel(broken),
            "a valid index",
            "an invalid one, left by a build that failed or has not ended",
            "reindex index concurrently " + broken.name().sql());
      }
    }
    live.stream()
        .filter(index -> index.root() == table.oid() && !(index.ofPartition() && index.attached()))
        .forEach(this::compareMentions);
  }

  private void compareMentions(Live.Index index) {
    for (int i = 0; i < index.mentionedColumns().size(); i++) {
      String column = index.mentionedColumns().get(i);
      if (expected.columns(Column.Use.OFTEN_WRITTEN).contains(column)) {
        fault(
            indexLabel(index),
            "no index to mention " + column + ", since " + expected.oftenBecause(),
            column + " " + index.mentionedPlaces().get(i),
            "drop index concurrently " + index.name().sql());
      }
    }
  }

  private boolean satisfies(Live.Index live, Index index) {
    return sameKeys(live, index)
        && live.method().equals("btree")
        && live.unique() == index.unique()
        && live.primary() == index.primary()
        && (live.immediate() || !index.unique())
        && samePredicate(live, index);
  }

  /** An index of all rows serves as well, if less surely while the table looks empty. */
  private static boolean samePredicate(Live.Index live, Index index) {
    return Objects.equals(live.predicate(), index.predicate())
        || (!index.unique() && live.predicate() == null);
  }

  /** A partitioned table's primary key must hold the partition key, too. */
  private boolean sameKeys(Live.Index live, Index index) {
    if (table.partitioned() && index.primary()) {
      return live.keys().containsAll(index.keys());
    }
    return live.keys().equals(index.keys());
  }

  /** What stands in the missing index's place, if something does. */
  private static String nearest(Index index, List<Live.Index> own) {
    String near =
        own.stream()
            .filter(live -> isNear(live, index))
            .map(live -> TableName.plain(live.name().name()) + ", " + live.definition())
            .collect(Collectors.joining("; "));
    return near.isEmpty() ? "no such " + (index.primary() ? "key" : "index") : near;
  }

  private static boolean isNear(Live.Index live, Index index) {
    if (live.primary() || index.primary()) {
      return live.primary() && index.primary();
    }
    return columnsOf(live.keys()).equals(Set.copyOf(index.keys()))
        || (index.unique() && Objects.equals(index.predicate(), live.predicate()));
  }

  private static Set<String> columnsOf(List<String> keys) {
    return keys.stream()
        .map(key -> key.contains(" ") ? key.substring(0, key.indexOf(' ')) : key)
        .collect(Collectors.toSet());
  }

  private String indexLabel(Live.Index index) {
    return "index " + index.name().label() + " of " + table.name().label();
  }

  private String label(String column) {
    return "column " + table.name().label() + "." + TableName.plain(column);
  }

  private String alter(String change) {
    return "alter table " + table.name().sql() + " " + change;
  }

  private String change(String column, String change) {
    return alter("alter column " + TableName.quoted(column) + " " + change);
  }

  private static String nullability(boolean notNull) {
    return notNull ? "not null" : "nullable";
  }

  private void fault(String object, String wanted, String found, String remedy) {
    faults.add(new SchemaFault(object, wanted, found, remedy));
  }
}
