package dev.outbox4j.internal.order;

import dev.outbox4j.spi.BucketStore.Portion;
import dev.outbox4j.spi.BucketStore.ReadRequest;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * How much of each bucket the next read asks for, by what the reads before it brought. Confined to
 * the fetcher.
 */
final class RangePlan {
  private static final int LEAST_SCAN = 1_000;
  private static final long PART_WIDTH = 1_000_000;

  private long partWidth = PART_WIDTH;

  /** The largest payload of the last ranges; the greatest number if there was no room for one. */
  private long largest = Long.MAX_VALUE;

  /** The last ranges had nothing but rows that are not due yet. */
  private boolean passesBy;

  /** There was more of this bucket than the last read could give; or null. */
  private @Nullable Integer backlogged;

  /**
   * Shares the rows that may be read among the buckets: most of them among those of which there is
   * known to be more, and of each other bucket a few.
   *
   * @param skips whether rows of some keys are passed by, so that more is to be looked through
   */
  List<Portion> portions(Collection<BucketScan> scans, int limit, boolean skips) {
    int most = skips || passesBy ? Math.max(limit, LEAST_SCAN) : limit;
    int all = scans.size();
    int full = (int) scans.stream().filter(BucketScan::isFull).count();
    int few = Math.max(1, most / (full == 0 ? all : 8 * all));
    int many = Math.max(few, (most - few * (all - full)) / Math.max(1, full));
    int least = most / Math.max(1, full); // if there is room for less than a row of each
    List<Portion> portions = new ArrayList<>(all);
    for (BucketScan scan : scans) {
      portions.add(new Portion(scan.next(partWidth), scan.isFull() ? Math.max(many, least) : few));
    }
    return portions;
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
