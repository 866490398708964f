package dev.outbox4j.internal.order;

import dev.outbox4j.internal.state.HeldRow;
import dev.outbox4j.spi.BucketStore.Range;
import dev.outbox4j.spi.BucketStore.Read;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;

/** What was made of a read. Confined to the fetcher. */
final class Answer {
  final Read read;

  /** Rows that were taken, in the order of the answer. */
  List<HeldRow> rows = List.of();

  /**
   * Where rows may lie that go before rows of this answer and are not known: of a bucket of which
   * rows with keys came that are due, by range also such as were passed by.
   *
   * @param place up to which id the bucket had been read before
   * @param upTo up to which id there may be some
   */
  record Before(long place, long upTo) {}

  private final Map<Integer, Before> before = new TreeMap<>();

  /** How many rows were found that nobody knew of. */
  int found;

  /** There may be more to read at once. */
  boolean more;

  /** Up to which id all was found that was looked for. */
  long sweptTo = Long.MAX_VALUE;

  /** Buckets of which there is no more to find that is due. */
  final Set<Integer> exhausted = new HashSet<>();

  Answer(Read read) {
    this.read = read;
  }

  /** There may be rows of a key in this bucket that go before, and are not known. */
  void mayFollow(int bucket, Before rows) {
    before.merge(bucket, rows, (one, other) -> one.upTo() > other.upTo() ? one : other);
  }

  Map<Integer, Before> before() {
    return Collections.unmodifiableMap(before);
  }

  int taken() {
    return rows.size();
  }

  /** Returns what is left to look through of ranges that were asked for. */
  List<Range> rest(List<Range> asked) {
    List<Range> rest = new ArrayList<>();
    for (Range range : asked) {
      if (range.upTo() > sweptTo) {
        rest.add(new Range(range.bucket(), Math.max(range.above(), sweptTo), range.upTo()));
      }
    }
    return rest;
  }
}
