/**
 * For tests of Spring Boot services: {@link dev.outbox4j.test.spring.OutboxTest} boots what
 * publishes and handles, {@link dev.outbox4j.test.spring.AutoConfigureOutboxTest} gives any test a
 * database, and {@link dev.outbox4j.test.spring.TestOutbox} runs the handlers.
 */
@NullMarked
package dev.outbox4j.test.spring;

import org.jspecify.annotations.NullMarked;
