package dev.outbox4j.dlq;

import java.time.Duration;
import java.time.Instant;
import org.jspecify.annotations.Nullable;

/**
 * A partition of dead letters.
 *
 * @param name its name, for people
 * @param quoted its name in its schema, as it is written in a statement
 * @param from when the letters failed that it takes, the earliest; null for those of all times, or
 *     for the default partition
 * @param to before when they failed; null for the default partition, and for those of all times
 * @param isDefault whether it takes what no other one does
 * @param closedAt since when it has no unresolved letter, if that was found
 * @param bytes what the default partition takes on disk, without its indexes; 0 of the others
 * @param constrained whether a constraint was left by who attached another one
 */
record Partition(
    String name,
    String quoted,
    @Nullable Instant from,
    @Nullable Instant to,
    boolean isDefault,
    @Nullable Instant closedAt,
    long bytes,
    boolean constrained) {

  /** Tells whether each of its letters failed longer ago. */
  boolean isOlderThan(Duration age, Instant now) {
    return to != null && !to.isAfter(now.minus(age));
  }

  /** Tells whether it has had no unresolved letter for so long. */
  boolean isClosedFor(Duration time, Instant now) {
    return closedAt != null && !closedAt.isAfter(now.minus(time));
  }

  /** Tells whether it takes letters that fail at an instant, or could not beside another one. */
  boolean overlaps(Instant start, Instant end) {
    return !isDefault && (from == null || from.isBefore(end)) && (to == null || to.isAfter(start));
  }
}
