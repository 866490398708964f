/**
 * A small order service that embeds the framework; made to be copied. {@link
 * dev.outbox4j.examples.orders.OrderService} publishes, {@link
 * dev.outbox4j.examples.orders.ShippingHandler} handles, {@link
 * dev.outbox4j.examples.orders.OrdersTimers} does what is due by the clock, {@link
 * dev.outbox4j.examples.orders.OrdersApplication} puts all together.
 */
@NullMarked
package dev.outbox4j.examples.orders;

import org.jspecify.annotations.NullMarked;
