/**
 * Meters of timers, locks and monitors; the one package of this module that needs Micrometer on the
 * class path. {@link dev.outbox4j.triggers.metrics.MicrometerTimerMetrics}, {@link
 * dev.outbox4j.triggers.metrics.MicrometerLockMetrics} and {@link
 * dev.outbox4j.triggers.metrics.MicrometerMonitorMetrics} are the entry points.
 */
@NullMarked
package dev.outbox4j.triggers.metrics;

import org.jspecify.annotations.NullMarked;
