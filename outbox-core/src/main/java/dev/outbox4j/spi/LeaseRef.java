package dev.outbox4j.spi;

import org.jspecify.annotations.Nullable;

/**
 * Names one lease of one row: the fence that every write after the claim carries.
 *
 * @param queue the row's queue
 * @param id the row's id
 * @param token the row's token; it grows with every claim, and with every retry of an ordered
 *     queue, and is never set back
 * @param bucket the lease of the row's bucket, in an ordered queue; null if the row has its own
 */
public record LeaseRef(String queue, long id, long token, @Nullable BucketLease bucket) {
  /**
   * The lease of a row by itself.
   *
   * @param queue the row's queue
   * @param id the row's id
   * @param token the token the claim set
   */
  public LeaseRef(String queue, long id, long token) {
    this(queue, id, token, null);
  }
}
