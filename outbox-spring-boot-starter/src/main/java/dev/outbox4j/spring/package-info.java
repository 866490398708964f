/**
 * Outbox4j in a Spring Boot service: {@link dev.outbox4j.spring.OutboxTemplate} publishes in
 * Spring's transaction, {@link dev.outbox4j.spring.OutboxHandler} marks the methods that handle
 * messages, and {@code outbox4j.*} properties hold the settings.
 */
@NullMarked
package dev.outbox4j.spring;

import org.jspecify.annotations.NullMarked;
