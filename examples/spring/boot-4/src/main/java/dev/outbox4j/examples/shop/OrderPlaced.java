package dev.outbox4j.examples.shop;

import java.time.Instant;

/** The message that an order has been placed. */
public record OrderPlaced(String id, long cents, Instant at) {}
