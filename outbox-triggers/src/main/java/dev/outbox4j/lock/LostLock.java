package dev.outbox4j.lock;

import java.time.Duration;

/**
 * A lock that was lost before it was released.
 *
 * @param name its name, with its suffix
 * @param token the token by which it was held
 * @param sinceRenewal how long ago its last renewal was sent that succeeded, or its acquisition
 * @param period its lock period
 */
public record LostLock(String name, long token, Duration sinceRenewal, Duration period) {}
