package dev.outbox4j.timer.internal;

import java.time.Instant;
import org.jspecify.annotations.Nullable;

/**
 * Instants that were missed, in one run's stead.
 *
 * @param first the earliest
 * @param latest the latest
 * @param count how many
 */
public record Missed(Instant first, Instant latest, long count) {
  /** The same and one more, which is later. */
  static Missed with(@Nullable Missed before, Instant next) {
    return before == null
        ? new Missed(next, next, 1)
        : new Missed(before.first, next, before.count + 1);
  }
}
