/**
 * Timers: schedules, and what is to be done at their instants, once over all processes.
 *
 * <p>Everything here is immutable unless it says otherwise.
 */
@NullMarked
package dev.outbox4j.timer;

import org.jspecify.annotations.NullMarked;
