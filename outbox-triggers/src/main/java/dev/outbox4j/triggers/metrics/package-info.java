/**
 * Meters of timers and locks; the one package of this module that needs Micrometer on the class
 * path. {@link dev.outbox4j.triggers.metrics.MicrometerTimerMetrics} and {@link
 * dev.outbox4j.triggers.metrics.MicrometerLockMetrics} are the entry points.
 */
@NullMarked
package dev.outbox4j.triggers.metrics;

import org.jspecify.annotations.NullMarked;
