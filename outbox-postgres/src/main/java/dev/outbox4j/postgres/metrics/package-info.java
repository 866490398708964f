/**
 * Gauges of what queues hold; the one package of this module that needs Micrometer on the class
 * path. {@link dev.outbox4j.postgres.metrics.OutboxDepthMetrics} is the entry point.
 */
@NullMarked
package dev.outbox4j.postgres.metrics;

import org.jspecify.annotations.NullMarked;
