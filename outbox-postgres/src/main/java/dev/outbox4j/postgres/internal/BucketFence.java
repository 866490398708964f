package dev.outbox4j.postgres.internal;

import dev.outbox4j.spi.BucketLease;
import dev.outbox4j.spi.LeaseRef;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.TreeMap;
import java.util.stream.LongStream;

/** The parameters of writes on rows whose buckets are held. */
final class BucketFence {
  private static final long NO_BUCKET = -1;

  private BucketFence() {}

  static boolean isNeeded(LeaseRef lease) {
    return lease.bucket() != null;
  }

  /** Of several epochs of one bucket the youngest counts: the rows of others are not there. */
  static Map<String, Object> values(List<LeaseRef> leases) {
    TreeMap<Integer, Long> epochs = new TreeMap<>();
    long[] buckets = new long[leases.size()];
    int[] uncounted = new int[leases.size()];
    for (int i = 0; i < leases.size(); i++) {
      BucketLease lease = Objects.requireNonNull(leases.get(i).bucket(), "bucket");
      buckets[i] = lease.bucket();
      uncounted[i] = lease.counted() ? 0 : 1;
      epochs.merge(lease.bucket(), lease.epoch(), Math::max);
    }
    for (int i = 0; i < leases.size(); i++) {
      BucketLease lease = Objects.requireNonNull(leases.get(i).bucket());
      if (lease.epoch() < Objects.requireNonNull(epochs.get(lease.bucket()))) {
        buckets[i] = NO_BUCKET;
      }
    }
    return Map.of(
        "buckets",
        buckets,
        "uncounted",
        uncounted,
        "held_buckets",
        epochs.keySet().stream().mapToLong(Integer::longValue).toArray(),
        "held_epochs",
        epochs.values().stream().mapToLong(Long::longValue).toArray());
  }

  /** Tells whether there are several epochs of one bucket, so that each row is to be told apart. */
  static boolean hasSeveralEpochs(Map<String, Object> values) {
    return LongStream.of((long[]) Objects.requireNonNull(values.get("buckets")))
        .anyMatch(bucket -> bucket == NO_BUCKET);
  }
}
