package dev.outbox4j.benchmarks;

import dev.outbox4j.benchmarks.spi.Numbers;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.BitSet;
import java.util.List;

/**
 * Whether a backlog was worked off: each message handled, by whichever process, and none left in
 * the table. A count alone would let one that came twice hide one that never came.
 */
final class Completeness {
  private Completeness() {}

  /** Asks the processes that have drained together. */
  static Numbers of(List<ContestantJvm> jvms, int rows, Numbers into) throws IOException {
    List<BitSet> seen = new ArrayList<>();
    for (ContestantJvm jvm : jvms) {
      seen.add(seen(jvm));
    }
    return merge(seen, rows, left(jvms.get(0), into));
  }

  /** Counts the rows that one that has stopped has left. */
  static Numbers left(ContestantJvm jvm, Numbers into) throws IOException {
    jvm.perform("left").values().forEach(into::with);
    return into;
  }

  /** What came to several processes is repeated, what came to none is missing. */
  static Numbers merge(List<BitSet> seen, int rows, Numbers into) {
    BitSet all = new BitSet(rows);
    long again = 0;
    for (BitSet one : seen) {
      BitSet both = (BitSet) one.clone();
      both.and(all);
      again += both.cardinality();
      all.or(one);
    }
    return into.with("missing", (long) rows - all.cardinality())
        .with("repeated", Parts.value(into, "repeated") + again);
  }

  private static BitSet seen(ContestantJvm jvm) throws IOException {
    Path file = Files.createTempFile("outbox4j-seen", ".bits");
    try {
      jvm.perform("seen " + file);
      return BitSet.valueOf(Files.readAllBytes(file));
    } finally {
      Files.delete(file);
    }
  }
}
