package dev.outbox4j.internal.order;

import dev.outbox4j.spi.BucketStore.Owned;
import java.util.Collection;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicInteger;
import org.jspecify.annotations.Nullable;

/** The buckets that are read, and how far. Confined to the fetcher, but for what is forgotten. */
final class BucketScans {
  private final Map<Integer, BucketScan> scans = new TreeMap<>();

  /** Buckets whose keys were forgotten, by whoever keeps the leases: they are read anew. */
  private final Set<Integer> forgotten = ConcurrentHashMap.newKeySet();

  /** How many threads are at it: until they are done, what they forget stays forgotten. */
  private final AtomicInteger forgetting = new AtomicInteger();

  /** Leaves out what is not owned any more, or was forgotten; returns what is to be begun. */
  List<Owned> heed(Map<Integer, Owned> readable) {
    scans.values().removeIf(scan -> !scan.owned().isSameAs(readable.get(scan.bucket())));
    List<Integer> known = List.copyOf(forgotten);
    boolean done = forgetting.get() == 0; // asked after what is known, which may grow
    for (Integer bucket : known) {
      scans.remove(bucket);
      if (done) {
        forgotten.remove(bucket);
      }
      if (forgetting.get() != 0) { // who has just come to it may have found it marked
        forgotten.add(bucket);
      }
    }
    return readable.values().stream()
        .filter(each -> !scans.containsKey(each.bucket()) && !isForgotten(each.bucket()))
        .toList();
  }

  void begin(BucketScan scan) {
    scans.put(scan.bucket(), scan);
  }

  void clear() {
    scans.clear();
  }

  /** Their keys are not known any more, once that was done; read anew after it. Thread-safe. */
  void forget(Collection<Integer> buckets, Runnable forgetKeys) {
    forgetting.incrementAndGet();
    try {
      forgotten.addAll(buckets);
      forgetKeys.run();
    } finally {
      forgetting.decrementAndGet();
    }
  }

  boolean anyIsForgotten() {
    return !forgotten.isEmpty();
  }

  boolean isForgotten(int bucket) {
    return forgotten.contains(bucket);
  }

  boolean isEmpty() {
    return scans.isEmpty();
  }

  /** Tells whether some bucket has not been read to its end since it was begun. */
  boolean anyIsFresh() {
    return scans.values().stream().anyMatch(BucketScan::isFresh);
  }

  /** Tells whether an owner that died may have handled what comes next of some bucket. */
  boolean nextMayHaveBegun() {
    return scans.values().stream()
        .anyMatch(scan -> scan.isFresh() && scan.mayHaveBegun(scan.place() + 1));
  }

  Collection<BucketScan> all() {
    return scans.values();
  }

  Map<Integer, BucketScan> byBucket() {
    return Collections.unmodifiableMap(scans);
  }

  @Nullable BucketScan get(int bucket) {
    return scans.get(bucket);
  }

  /** Tells whether a bucket is read, under this ownership. */
  boolean isRead(int bucket, @Nullable Owned owned) {
    BucketScan scan = scans.get(bucket);
    return scan != null && scan.owned().isSameAs(owned) && !isForgotten(bucket);
  }

  /** Returns the id up to which a bucket was read; 0 if it is not read. */
  long readUpTo(int bucket) {
    BucketScan scan = scans.get(bucket);
    return scan == null ? 0 : scan.place();
  }
}
