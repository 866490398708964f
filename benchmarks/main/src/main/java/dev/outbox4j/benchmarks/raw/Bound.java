package dev.outbox4j.benchmarks.raw;

import java.time.OffsetDateTime;
import java.time.ZoneOffset;

/**
 * The place of a row in the order of claims: the next claim begins above it, and need not pass dead
 * rows again.
 *
 * @param time when the row was due
 * @param id its id
 */
record Bound(OffsetDateTime time, long id) {
  static final Bound START =
      new Bound(OffsetDateTime.of(1970, 1, 1, 0, 0, 0, 0, ZoneOffset.UTC), 0);

  Bound max(Bound other) {
    int order = time.compareTo(other.time);
    return order > 0 || (order == 0 && id > other.id) ? this : other;
  }
}
