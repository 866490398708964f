package dev.outbox4j.spi;

import java.time.Duration;
import java.util.List;
import java.util.OptionalInt;
import java.util.Set;

/**
 * The rows of one outbox table. Thread-safe. Each operation is one atomic statement in a
 * transaction of its own, borrows a connection for its duration only, and matches rows by id
 * <em>and</em> token; the ids it returns are those it changed, and one that is missing belongs to
 * another owner. Time is the server's.
 *
 * <p>All operations throw {@link StoreException} if the statement failed, also when it found more
 * rows than it was asked for, in which case nothing was changed.
 */
public interface OutboxStore {

  /**
   * Leases due rows that nobody holds, at most {@link ClaimRequest#limit()} of them.
   *
   * @param request what to claim
   * @return the rows
   */
  ClaimResult claim(ClaimRequest request);

  /**
   * Deletes rows that are done.
   *
   * @param leases the rows, at least one
   * @return the ids deleted
   */
  Set<Long> ack(List<LeaseRef> leases);

  /**
   * Makes rows due again after a failed attempt; wakes subscribers that sleep past the new instant.
   *
   * @param updates the rows, at least one
   * @return the ids updated
   */
  Set<Long> retry(List<RetryUpdate> updates);

  /**
   * Makes rows due again that did not fail; wakes subscribers that sleep past the new instant.
   *
   * @param updates the rows, at least one
   * @return the ids updated
   */
  Set<Long> reschedule(List<RescheduleUpdate> updates);

  /**
   * Extends leases to {@code lease} from now, also ones that have run out unclaimed.
   *
   * @param leases the rows, at least one
   * @param lease how long from now
   * @return the ids still held
   */
  Set<Long> renew(List<LeaseRef> leases, Duration lease);

  /**
   * Gives leases back unused and takes one off the deliveries; wakes sleeping subscribers.
   *
   * @param leases the rows, at least one
   * @return the ids released
   */
  Set<Long> release(List<LeaseRef> leases);

  /**
   * Tells publishers that a claimer has gone and needs no notification any more.
   *
   * @param owner as in its claims
   */
  void forget(String owner);

  /** {@return the channel on which publishers to this table notify} */
  String channel();

  /** {@return how many connections the store can borrow at once, if it can see that} */
  OptionalInt connectionLimit();

  /**
   * {@return the object that stands for the pool, so that subscribers which share one can be
   * counted together; compared by identity}
   */
  Object connectionSource();
}
