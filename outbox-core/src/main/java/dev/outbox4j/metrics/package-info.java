/**
 * Meters of subscribers; the one package that needs Micrometer on the class path. {@link
 * dev.outbox4j.metrics.MicrometerMetrics} is the entry point.
 */
@NullMarked
package dev.outbox4j.metrics;

import org.jspecify.annotations.NullMarked;
