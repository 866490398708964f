package dev.outbox4j.dlq;

import java.time.Instant;

/**
 * What was done about a dead letter.
 *
 * @param at when
 * @param by who did it
 * @param what {@code redriven}, {@code changed and redriven}, or {@code discarded: } and why
 */
public record DeadLetterResolution(Instant at, String by, String what) {}
