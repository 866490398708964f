package dev.outbox4j.triggers.metrics;

/** A meter of which all is known. */
@FunctionalInterface
interface Described {

  /** What is known of it. */
  MeterFacts facts();
}
