package dev.outbox4j.spi;

import dev.outbox4j.OutboxStoreException;
import java.time.Duration;
import java.util.List;
import java.util.Optional;
import java.util.OptionalInt;

/**
 * The rows of one outbox table. Thread-safe. Each operation is one atomic statement in a
 * transaction of its own and borrows a connection for its duration only. Writes name rows of one
 * queue, match them by id <em>and</em> token, and never wait long for a row that another session
 * has locked: {@link Written} tells such rows apart. Time is the server's.
 *
 * <p>All operations throw {@link OutboxStoreException} if the statement failed, also when it found
 * more rows than it was asked for, in which case nothing was changed. The server ends each
 * statement by itself before {@link #networkTimeout()} has passed.
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
   * Deletes rows that are done. Of rows that are leased by their {@linkplain LeaseRef#bucket()
   * bucket}, all that have one ordering key are deleted, or none: if one of them is locked, the
   * others are busy as well.
   *
   * @param leases the rows, at least one, all of one queue
   * @return which rows were deleted
   */
  Written ack(List<LeaseRef> leases);

  /**
   * Makes rows due again after a failed attempt; wakes subscribers that sleep past the new instant.
   *
   * @param updates the rows, at least one, all of one queue
   * @return which rows were updated
   */
  Written retry(List<RetryUpdate> updates);

  /**
   * Makes rows due again that did not fail; wakes subscribers that sleep past the new instant.
   *
   * @param updates the rows, at least one, all of one queue
   * @return which rows were updated
   */
  Written reschedule(List<RescheduleUpdate> updates);

  /**
   * Extends leases to {@code lease} from now, also ones that have run out unclaimed.
   *
   * @param leases the rows, at least one, all of one queue
   * @param lease how long from now
   * @return which leases were extended
   */
  Written renew(List<LeaseRef> leases, Duration lease);

  /**
   * Gives leases back unused and takes one off the deliveries; wakes sleeping subscribers.
   *
   * @param leases the rows, at least one, all of one queue
   * @return which rows were released
   */
  Written release(List<LeaseRef> leases);

  /**
   * Gives the watch of a queue up because the claimer has no room for more rows, and wakes one
   * subscriber that is in reserve.
   *
   * @param queue the queue
   * @param owner as in its claims
   */
  void pass(String queue, String owner);

  /**
   * Takes back all that a claimer which goes away has said of itself, and wakes one subscriber in
   * reserve of each queue whose watch it had.
   *
   * @param owner as in its claims
   */
  void forget(String owner);

  /**
   * Sends a notification on the {@linkplain #channel() channel}, whoever sleeps.
   *
   * @param payload its text
   */
  void send(String payload);

  /** {@return the ordered queues of the table, if the store can have such} */
  default Optional<BucketStore> buckets() {
    return Optional.empty();
  }

  /** {@return the pauses of the table's queues, if the store can have such} */
  default Optional<PauseStore> pauses() {
    return Optional.empty();
  }

  /** {@return the slots of the table's queues, if the store can limit how many rows are leased} */
  default Optional<SlotStore> slots() {
    return Optional.empty();
  }

  /** {@return how long an operation may take until its connection is given up} */
  Duration networkTimeout();

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
