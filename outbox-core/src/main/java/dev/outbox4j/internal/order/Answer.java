package dev.outbox4j.internal.order;

import dev.outbox4j.internal.state.HeldRow;
import dev.outbox4j.spi.BucketStore.Range;
import dev.outbox4j.spi.BucketStore.Read;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;

/** What was made of a read. Confined to the fetcher. */
final class Answer {
  final Read read;

  /** Rows that were taken, in the order of the answer. */
  List<HeldRow> rows = List.of();

  /** Buckets of whose ranges rows with keys came, also such as wait for others of their key. */
  final Set<Integer> keyed = new HashSet<>();

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
