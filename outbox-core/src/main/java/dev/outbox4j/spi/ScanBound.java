package dev.outbox4j.spi;

import java.time.Instant;

/**
 * A place in the order of a claim: due instant, then id. A hint to skip what was seen before, never
 * an offset.
 *
 * @param availableAt the due instant, to the microsecond
 * @param id the row's id
 */
public record ScanBound(Instant availableAt, long id) implements Comparable<ScanBound> {

  @Override
  public int compareTo(ScanBound other) {
    int byInstant = availableAt.compareTo(other.availableAt);
    return byInstant != 0 ? byInstant : Long.compare(id, other.id);
  }
}
