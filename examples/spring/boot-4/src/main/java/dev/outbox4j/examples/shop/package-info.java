/**
 * A small shop on Spring Boot with JPA; made to be copied. {@link
 * dev.outbox4j.examples.shop.OrderService} publishes and handles.
 */
@NullMarked
package dev.outbox4j.examples.shop;

import org.jspecify.annotations.NullMarked;
