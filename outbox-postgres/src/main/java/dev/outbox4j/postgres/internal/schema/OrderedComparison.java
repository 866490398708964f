package dev.outbox4j.postgres.internal.schema;

import dev.outbox4j.internal.OneLine;
import dev.outbox4j.internal.schema.Buckets;
import dev.outbox4j.internal.schema.Names;
import dev.outbox4j.postgres.SchemaFault;
import dev.outbox4j.postgres.internal.schema.Live.Relation;
import java.sql.SQLException;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;

/** Compares what each ordered queue needs: its indexes, by their names, and its buckets. */
final class OrderedComparison {
  private final Catalog catalog;
  private final List<SchemaFault> faults;

  OrderedComparison(Catalog catalog, List<SchemaFault> faults) {
    this.catalog = catalog;
    this.faults = faults;
  }

  void compare(Set<String> queues, Relation outbox, List<Live.Index> live, Relation buckets)
      throws SQLException {
    Set<String> sorted = new TreeSet<>(queues);
    String table = outbox.name().name();
    for (String queue : sorted) {
      for (String index :
          List.of(
              Names.bucketIndex(table, queue),
              Names.keyIndex(table, queue),
              Names.dueIndex(table, queue))) {
        compareIndex(queue, index, outbox, live);
      }
    }
    Map<String, Long> counts = catalog.buckets(buckets, sorted);
    if (counts != null) { // else the grants say why
      for (String queue : sorted) {
        compareBuckets(queue, counts.getOrDefault(queue, 0L), buckets);
      }
    }
  }

  private void compareIndex(String queue, String index, Relation outbox, List<Live.Index> live) {
    Live.Index found =
        live.stream()
            .filter(each -> each.root() == outbox.oid() && each.name().name().equals(index))
            .findFirst()
            .orElse(null);
    if (found == null) {
      fault(
          "index " + TableName.plain(index), queue, "an index of " + outbox.name().label(), "none");
    } else if (!found.valid()) {
      fault(
          "index " + TableName.plain(index),
          queue,
          "a valid index of " + outbox.name().label(),
          "an invalid one, left by a build that failed or has not ended");
    }
  }

  private void compareBuckets(String queue, long count, Relation buckets) {
    if (count != Buckets.COUNT) {
      fault("table " + buckets.name().label(), queue, Buckets.COUNT + " buckets", count + "");
    }
  }

  private void fault(String object, String queue, String wanted, String found) {
    faults.add(
        new SchemaFault(
            object,
            wanted + " for ordered queue '" + OneLine.of(queue) + "'",
            found,
            "OrderedMigrations.of(...).migrate(...) for that queue, or its queuesSql()"));
  }
}
