package dev.outbox4j.internal.order;

import dev.outbox4j.spi.BucketStore.Portion;
import dev.outbox4j.spi.BucketStore.ReadRequest;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * How much of each bucket the next read asks for, by what the reads before it brought. Confined to
 * the fetcher.
 */
final class RangePlan {
  private static final int LEAST_SCAN = 1_000;
  private static final long PART_WIDTH = 1_000_000;

  /** Of a bucket of which nothing is known yet. */
  private static final double LEAST_DENSITY = 1e-9;

  private long partWidth = PART_WIDTH;

  /** The largest payload of the last ranges; the greatest number if there was no room for one. */
  private long largest = Long.MAX_VALUE;

  /** The last ranges had nothing but rows that are not due yet. */
  private boolean passesBy;

  /** There was more of this bucket than the last read could give; or null. */
  private @Nullable Integer backlogged;

  /**
   * Shares the rows that may be read among the buckets: of each a few, and the others among those
   * of which there is known to be more, so that these come to about the same id. Then the oldest of
   * the queue goes first, and rows that are read and deleted together lie together.
   *
   * @param skips whether rows of some keys are passed by, so that more is to be looked through
   */
  List<Portion> portions(Collection<BucketScan> scans, int limit, boolean skips) {
    int most = skips || passesBy ? Math.max(limit, LEAST_SCAN) : limit;
    int all = scans.size();
    List<BucketScan> full =
        scans.stream()
            .filter(BucketScan::isFull)
            .sorted(Comparator.comparingLong(BucketScan::place))
            .toList();
    int few = Math.max(1, most / (full.isEmpty() ? all : 8 * all));
    Map<Integer, Integer> more = shares(full, most - few * all);
    boolean isCrowded = 2 * few * (all - full.size()) > most; // the few would take half the room
    int least = isCrowded ? most / Math.max(1, full.size()) : 0;
    List<Portion> portions = new ArrayList<>(all);
    for (BucketScan scan : scans) {
      int share = few + more.getOrDefault(scan.bucket(), 0);
      portions.add(
          new Portion(scan.next(partWidth), scan.isFull() ? Math.max(share, least) : share));
    }
    return portions;
  }

  /**
   * Shares rows among buckets, the one that has come least far first: each gets what it is expected
   * to have up to the id that all of them can come to.
   */
  private static Map<Integer, Integer> shares(List<BucketScan> byPlace, int rows) {
    if (rows <= 0 || byPlace.isEmpty()) {
      return Map.of();
    }
    long first = byPlace.get(0).place();
    double average = byPlace.stream().mapToDouble(BucketScan::density).average().orElse(0);
    double[] densities = new double[byPlace.size()];
    double density = 0;
    double before = 0; // rows between the first place and the others
    double idsToGo = 0; // from the first place on
    int sharing = 0;
    while (sharing < byPlace.size() && byPlace.get(sharing).place() - first <= idsToGo) {
      BucketScan scan = byPlace.get(sharing);
      densities[sharing] = scan.density() > 0 ? scan.density() : Math.max(average, LEAST_DENSITY);
      density += densities[sharing];
      before += densities[sharing] * (scan.place() - first);
      idsToGo = (rows + before) / density;
      sharing++;
    }
    Map<Integer, Integer> shares = new HashMap<>();
    double sum = 0;
    for (int i = 0; i < sharing; i++) {
      BucketScan scan = byPlace.get(i);
      double next = Math.min(rows, sum + densities[i] * (idsToGo - (scan.place() - first)));
      shares.put(scan.bucket(), (int) next - (int) sum); // what is cut off goes to the next
      sum = next;
    }
    return shares;
  }

  /** Returns up to which size payloads come at once, so that all fit; 0 if some may not. */
  long rowBytes(long bytes, int limit) {
    return largest <= bytes / limit ? bytes / limit : 0;
  }

  /** There is much that cannot be handled, such as rows that are dead or not due. */
  void readInSmallerParts() {
    partWidth = Math.max(LEAST_SCAN, partWidth / 8);
  }

  /** The server answered within its time. */
  void answered(ReadRequest request) {
    if (request.portions().stream().anyMatch(each -> each.range().upTo() < Long.MAX_VALUE)) {
      partWidth = Math.min(PART_WIDTH, 2 * partWidth);
    }
  }

  /**
   * Learns from the rows of the ranges.
   *
   * @param largestPayload the greatest number if one had no room
   */
  void learn(int rows, int dueRows, long largestPayload) {
    passesBy = rows > 0 && dueRows == 0;
    largest = rows > 0 ? largestPayload : largest;
    backlogged = null;
  }

  /** There is more of this bucket than was read. */
  void backlogged(int bucket) {
    backlogged = bucket;
  }

  @Nullable Integer backlogged() {
    return backlogged;
  }
}
