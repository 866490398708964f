package dev.outbox4j.spi;

import java.util.List;
import java.util.Set;

/** Moves rows of one store to its dead-letter table. Thread-safe. */
@FunctionalInterface
public interface DeadLetterWriter {

  /**
   * Moves rows in one atomic statement: each is deleted from the outbox and inserted as a dead
   * letter, or neither.
   *
   * @param entries the rows, at least one
   * @return the ids that were moved; one that is missing belongs to another owner
   * @throws StoreException if nothing was moved
   */
  Set<Long> write(List<DeadLetterEntry> entries);
}
