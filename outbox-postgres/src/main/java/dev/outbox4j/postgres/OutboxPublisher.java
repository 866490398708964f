package dev.outbox4j.postgres;

import dev.outbox4j.OutboxMessage;
import java.sql.Connection;
import java.util.Collection;
import java.util.List;

/**
 * Publishes messages in the caller's transaction, over JDBC. Thread-safe. One statement per call,
 * whatever the number of messages. {@link dev.outbox4j.postgres.jooq.JooqOutboxPublisher} does so
 * on the connection that jOOQ holds.
 *
 * <p>The connection stays the caller's: nothing here commits, rolls back, closes it or changes its
 * settings. All methods throw {@link dev.outbox4j.OutboxException} if the connection is in
 * autocommit mode (unless that was {@linkplain PostgresOutbox.PublisherBuilder#allowAutoCommit()
 * allowed}), a message cannot be encoded, or the statement fails; in the last case PostgreSQL has
 * aborted the caller's transaction. Publishing a timer id that another transaction has published
 * and not yet committed waits for that transaction's end.
 *
 * <p>The same goes for a dedup key. A key that was published in a transaction which rolled back is
 * free. What publishes keys in several calls of one transaction should do so in the same order
 * everywhere, or two transactions may wait for each other.
 *
 * <p>A timer id or dedup key that is taken is no failure at read committed. At repeatable read or
 * serializable it is one (SQLSTATE 40001) if the row was committed after the caller's transaction
 * began to look: repeat the transaction, as after any such failure.
 *
 * <p>The payloads of one call may have 256 MiB together.
 *
 * <p>The least a publisher's role needs, for a table {@code outbox}:
 *
 * <pre>{@code
 * grant insert (queue, type, ordering_key, payload, headers, available_at, timer_id, expires_at)
 *   on outbox to ...;
 * grant select (id, queue, timer_id, available_at) on outbox to ...;
 * grant select (queue, wake_at) on outbox_sleepers to ...; -- not with NotifyMode.NEVER
 * grant delete, select (lease_until) on outbox to ...;     -- to cancel timers
 * -- to publish dedup keys: what DedupMigrations.grantsSql says
 * }</pre>
 *
 * and {@code usage} on the schema.
 */
public interface OutboxPublisher {

  /**
   * Publishes one message.
   *
   * @param connection the caller's, in a transaction
   * @param message the message
   * @return the new row, or that there was no need of one
   */
  Published publish(Connection connection, OutboxMessage message);

  /**
   * Publishes messages in one statement.
   *
   * <p>Row ids ascend in the order of the messages of a queue and ordering key, and in the order of
   * those that have neither ordering key nor timer id. They ascend in the order of the whole call
   * if its timer ids do (by queue, then by id), as one alone does. Otherwise rows with timer ids
   * are inserted in the order of these, so that two transactions that publish the same ids in one
   * call each cannot deadlock. Messages of one queue and ordering key with different timer ids are
   * refused, since they could not keep both orders.
   *
   * @param connection the caller's, in a transaction
   * @param messages the messages, of any queues; may be empty
   * @return what became of each, in their order
   */
  List<Published> publish(Connection connection, Collection<OutboxMessage> messages);

  /**
   * Deletes the live row of a timer id, unless a subscriber holds it. In an ordered queue nothing
   * tells which rows are held: there it also deletes one whose handler runs.
   *
   * @param connection the caller's, in a transaction
   * @param queue the queue
   * @param timerId the timer id
   * @return true if it was deleted; false if there is none, or it is being handled
   */
  boolean cancelTimer(Connection connection, String queue, String timerId);
}
