package dev.outbox4j.spi;

import java.time.Duration;

/**
 * A failed attempt to write: the row is due again after the delay, its lease is given up and its
 * attempts grow by one.
 *
 * @param lease the fence
 * @param delay zero or more, added to the server's clock
 * @param error what went wrong, bounded and storable
 */
public record RetryUpdate(LeaseRef lease, Duration delay, String error) {}
