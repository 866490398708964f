/**
 * Monitors: look until it is so, then tell someone once, and stop. {@link
 * dev.outbox4j.monitor.Monitors} runs the checks, {@link dev.outbox4j.monitor.MonitorControl}
 * starts instances and does to them what people do.
 *
 * <p>Everything here is immutable unless it says otherwise.
 */
@NullMarked
package dev.outbox4j.monitor;

import org.jspecify.annotations.NullMarked;
