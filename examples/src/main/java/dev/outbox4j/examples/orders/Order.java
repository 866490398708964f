package dev.outbox4j.examples.orders;

import java.time.Duration;
import java.util.UUID;

/**
 * An order that passed the checks of {@link PlaceOrder}.
 *
 * @param id chosen by the client, so that a repeated request is recognised
 * @param customer who ordered
 * @param item what
 * @param quantity how many
 * @param shipIn ship it no sooner than this
 */
public record Order(UUID id, String customer, String item, int quantity, Duration shipIn) {}
