package dev.outbox4j.postgres.metrics;

import dev.outbox4j.postgres.QueueDepth;
import dev.outbox4j.postgres.internal.QueueDepths;
import java.time.Duration;

/**
 * What the gauges of one queue show.
 *
 * @param oldestNanos how long the oldest ready message has been due; NaN if that is not known
 * @param oldestDueNanos how long the oldest message has been due, leased or not
 */
record Depth(long ready, long leased, long later, double oldestNanos, double oldestDueNanos) {
  static final Depth EMPTY = new Depth(0, 0, 0, 0, 0);

  static Depth of(QueueDepth depth) {
    return new Depth(
        depth.ready(),
        depth.leased(),
        depth.dueLater(),
        oldestNanos(depth),
        depth.oldestDue().map(Duration::toNanos).orElse(0L));
  }

  /** Behind more leased messages than are counted one may be ready. */
  private static double oldestNanos(QueueDepth depth) {
    return depth
        .oldestReady()
        .map(Duration::toNanos)
        .map(Long::doubleValue)
        .orElse(depth.leased() >= QueueDepths.DEFAULT_COUNT_LIMIT ? Double.NaN : 0);
  }

  Depth plus(Depth more) {
    return new Depth(
        ready + more.ready,
        leased + more.leased,
        later + more.later,
        Double.isNaN(oldestNanos) || Double.isNaN(more.oldestNanos)
            ? Double.NaN
            : Math.max(oldestNanos, more.oldestNanos),
        Math.max(oldestDueNanos, more.oldestDueNanos));
  }
}
