package dev.outbox4j.monitor;

import java.time.Instant;

/**
 * Something that an instance was told.
 *
 * @param id grows with each event of the application
 * @param name what has happened
 * @param payload what was said of it
 * @param raisedAt when, by the server's clock
 */
public record RaisedEvent(long id, String name, Json payload, Instant raisedAt) {}
