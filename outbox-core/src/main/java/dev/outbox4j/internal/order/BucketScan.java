package dev.outbox4j.internal.order;

import dev.outbox4j.internal.state.HeldRow;
import dev.outbox4j.spi.BucketStore.Owned;
import dev.outbox4j.spi.BucketStore.Range;
import dev.outbox4j.spi.ScanBound;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;

/** How far one bucket has been read. Confined to the fetcher. */
final class BucketScan {
  /** How much what was met counts at the next range. */
  private static final double MEMORY = 0.75;

  private final Owned owned;
  private long place;
  private long partsUpTo;

  /** Its rows may be held still, from an earlier time as owner. */
  private boolean fresh = true;

  /** There was more than the last read could give. */
  private boolean full;

  private double rowsMet;
  private double idsMet;

  private @Nullable ScanBound duePlace;

  /** Rows that are held, and may be met again above the place. */
  private final List<HeldRow> heldAbove;

  BucketScan(Owned owned, List<HeldRow> heldBefore) {
    this.owned = owned;
    this.heldAbove = new ArrayList<>(heldBefore);
    this.partsUpTo = owned.seenUpTo();
  }

  int bucket() {
    return owned.bucket();
  }

  Owned owned() {
    return owned;
  }

  /** Returns the id up to which rows were read. */
  long place() {
    return place;
  }

  void read(long upTo) {
    place = Math.max(place, upTo);
  }

  /** Tells whether an owner that died may have handled the row. */
  boolean mayHaveBegun(long id) {
    return id <= owned.countedUpTo();
  }

  boolean isFresh() {
    return fresh;
  }

  /** All there was has been read. */
  void caughtUp() {
    fresh = false;
  }

  /** A row was taken before the bucket was read up to it. */
  void took(HeldRow row) {
    if (row.id() > place) {
      heldAbove.add(row);
    }
  }

  /** Returns the rows that are held, and may be met again above the place. */
  List<HeldRow> heldAbove() {
    heldAbove.removeIf(row -> row.id() <= place || row.state() == HeldRow.State.SETTLED);
    return heldAbove;
  }

  /** Returns how many rows there were for each id, in the last ranges; 0 if that is not known. */
  double density() {
    return idsMet == 0 ? 0 : rowsMet / idsMet;
  }

  /** So many rows came of a range, from the first to the last of these ids. */
  void met(int rows, long first, long last) {
    if (rows > 1) { // sums, since what a few rows say is chance
      rowsMet = MEMORY * rowsMet + rows - 1;
      idsMet = MEMORY * idsMet + last - first;
    }
  }

  boolean isFull() {
    return full;
  }

  void full(boolean more) {
    full = more;
  }

  /** Up to an id that exists, it is read in parts. */
  void readInParts(long upTo) {
    partsUpTo = Math.max(partsUpTo, upTo);
  }

  /** Returns where to read on: first in parts, then without an end. */
  Range next(long width) {
    long upTo = place >= partsUpTo ? Long.MAX_VALUE : Math.min(partsUpTo, place + width);
    return new Range(bucket(), place, upTo);
  }

  @Nullable ScanBound duePlace() {
    return duePlace;
  }

  void dueSeen(@Nullable ScanBound upTo) {
    duePlace = upTo;
  }
}
