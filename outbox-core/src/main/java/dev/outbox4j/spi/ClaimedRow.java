package dev.outbox4j.spi;

/**
 * A row as a claim returns it.
 *
 * @param lease the fence of every later write
 * @param message what was published
 * @param history what became of it before
 */
public record ClaimedRow(LeaseRef lease, StoredMessage message, History history) {}
