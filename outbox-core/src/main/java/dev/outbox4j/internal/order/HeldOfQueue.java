package dev.outbox4j.internal.order;

import dev.outbox4j.internal.state.ClaimedBatch;
import dev.outbox4j.internal.state.HeldRow;
import dev.outbox4j.internal.state.HeldRows;
import dev.outbox4j.spi.BucketLease;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.function.Consumer;

/** The rows of one ordered queue among those that are held. Thread-safe. */
final class HeldOfQueue {
  private final String queue;
  private final HeldRows registry;

  HeldOfQueue(String queue, HeldRows registry) {
    this.queue = queue;
    this.registry = registry;
  }

  /** Returns the lease that a row of an ordered queue was read under. */
  static BucketLease bucketOf(HeldRow row) {
    return Objects.requireNonNull(row.lease().bucket());
  }

  private void forEach(Consumer<HeldRow> action) {
    for (ClaimedBatch batch : registry.batches()) {
      for (int i = 0; batch.queue().equals(queue) && i < batch.size(); i++) {
        HeldRow row = batch.at(i);
        if (row != null) {
          action.accept(row);
        }
      }
    }
  }

  /** Returns the ids of the rows, each with the epoch of its bucket when it was read. */
  Map<Long, Long> epochs() {
    Map<Long, Long> epochs = new HashMap<>();
    forEach(row -> epochs.put(row.id(), bucketOf(row).epoch()));
    return epochs;
  }

  Set<Integer> buckets() {
    Set<Integer> buckets = new HashSet<>();
    forEach(row -> buckets.add(bucketOf(row).bucket()));
    return buckets;
  }

  List<HeldRow> of(Set<Integer> buckets) {
    List<HeldRow> held = new ArrayList<>();
    forEach(
        row -> {
          if (buckets.contains(bucketOf(row).bucket())) {
            held.add(row);
          }
        });
    return held;
  }
}
