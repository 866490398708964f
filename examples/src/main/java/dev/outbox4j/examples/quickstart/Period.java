package dev.outbox4j.examples.quickstart;

import java.time.Instant;

/**
 * A time by the server's clock.
 *
 * @param after it begins after this
 * @param until it ends with this
 */
record Period(Instant after, Instant until) {}
