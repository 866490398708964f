package dev.outbox4j.benchmarks.spring;

/**
 * A message.
 *
 * @param payload in Base64
 */
public record Message(String payload) {}
