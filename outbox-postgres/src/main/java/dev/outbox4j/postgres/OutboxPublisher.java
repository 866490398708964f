package dev.outbox4j.postgres;

import dev.outbox4j.OutboxMessage;
import java.sql.Connection;
import java.util.Collection;
import java.util.List;
import org.jooq.Configuration;

/**
 * Publishes messages in the caller's transaction, over JDBC or jOOQ. Thread-safe. One statement per
 * call, whatever the number of messages.
 *
 * <p>The connection stays the caller's: nothing here commits, rolls back, closes it or changes its
 * settings. All methods throw {@link dev.outbox4j.OutboxException} if the connection is in
 * autocommit mode (unless that was {@linkplain PostgresOutbox.PublisherBuilder#allowAutoCommit()
 * allowed}), a message cannot be encoded, or the statement fails; in the last case PostgreSQL has
 * aborted the caller's transaction.
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
   * @param connection the caller's, in a transaction
   * @param messages the messages, of any queues; may be empty
   * @return what became of each, in their order
   */
  List<Published> publish(Connection connection, Collection<OutboxMessage> messages);

  /**
   * Publishes one message in a jOOQ transaction.
   *
   * @param configuration the transaction's configuration
   * @param message the message
   * @return the new row, or that there was no need of one
   */
  Published publish(Configuration configuration, OutboxMessage message);

  /**
   * Publishes messages in a jOOQ transaction, in one statement.
   *
   * @param configuration the transaction's configuration
   * @param messages the messages, of any queues; may be empty
   * @return what became of each, in their order
   */
  List<Published> publish(Configuration configuration, Collection<OutboxMessage> messages);

  /**
   * Deletes the live row of a timer id, unless a subscriber holds it.
   *
   * @param connection the caller's, in a transaction
   * @param queue the queue
   * @param timerId the timer id
   * @return true if it was deleted; false if there is none, or it is being handled
   */
  boolean cancelTimer(Connection connection, String queue, String timerId);

  /**
   * Deletes the live row of a timer id in a jOOQ transaction, unless a subscriber holds it.
   *
   * @param configuration the transaction's configuration
   * @param queue the queue
   * @param timerId the timer id
   * @return true if it was deleted; false if there is none, or it is being handled
   */
  boolean cancelTimer(Configuration configuration, String queue, String timerId);
}
