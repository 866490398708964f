package dev.outbox4j.spi;

import java.time.Duration;

/**
 * What became of a message so far.
 *
 * @param deliveries claims, this one included
 * @param attempts handler runs that ended in failure
 * @param sinceFirstAttempt how long ago the first failed attempt was recorded; zero if there was
 *     none
 * @param age how long ago the row was created, when it was claimed, by the server's clock
 */
public record History(int deliveries, int attempts, Duration sinceFirstAttempt, Duration age) {}
