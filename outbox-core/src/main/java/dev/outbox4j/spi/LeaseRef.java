package dev.outbox4j.spi;

/**
 * Names one lease of one row: the fence that every write after the claim carries.
 *
 * @param queue the row's queue
 * @param id the row's id
 * @param token the token the claim set; it grows with every claim and is never set back
 */
public record LeaseRef(String queue, long id, long token) {}
