package dev.outbox4j.spi;

/** Where terminal failures go; named by the user, bound to a store when the subscriber is built. */
@FunctionalInterface
public interface DeadLetters {

  /**
   * Returns the writer for a store. Does no I/O.
   *
   * @param store the subscriber's store
   * @return the writer
   * @throws IllegalArgumentException if this kind of dead letters cannot serve that kind of store
   */
  DeadLetterWriter bind(OutboxStore store);
}
