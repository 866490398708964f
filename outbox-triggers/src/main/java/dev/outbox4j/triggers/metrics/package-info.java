/**
 * Meters of timers, locks, monitors and table pollers; the one package of this module that needs
 * Micrometer on the class path. {@link dev.outbox4j.triggers.metrics.MicrometerTimerMetrics},
 * {@link dev.outbox4j.triggers.metrics.MicrometerLockMetrics}, {@link
 * dev.outbox4j.triggers.metrics.MicrometerMonitorMetrics} and {@link
 * dev.outbox4j.triggers.metrics.MicrometerPollerMetrics} are the entry points.
 */
@NullMarked
package dev.outbox4j.triggers.metrics;

import org.jspecify.annotations.NullMarked;
