package dev.outbox4j.spi;

import java.time.Duration;

/**
 * A reschedule to write: the row is due again after the delay, its lease is given up and its
 * attempts, attempt instants and last error are cleared.
 *
 * @param lease the fence
 * @param delay zero or more, added to the server's clock
 */
public record RescheduleUpdate(LeaseRef lease, Duration delay) {}
