package dev.outbox4j.spi;

import dev.outbox4j.OutboxStoreException;

/**
 * The slots that bound how many rows of a queue are leased at once; see {@link
 * ClaimRequest#slots()}. A slot is taken by a claim, and free again once the row of that claim is
 * no longer leased by it. Thread-safe.
 */
public interface SlotStore {

  /**
   * Makes the slots of a queue that are missing, up to a number. Slots above it are left alone.
   *
   * @param queue the queue
   * @param slots how many there are to be, 1 or more
   * @return how many were missing
   * @throws OutboxStoreException if the statement failed
   */
  int open(String queue, int slots);
}
