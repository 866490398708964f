package dev.outbox4j.postgres;

import dev.outbox4j.OutboxMessage;
import io.r2dbc.spi.Connection;
import java.util.Collection;
import org.reactivestreams.Publisher;

/**
 * Publishes messages in the caller's transaction, over R2DBC; nothing blocks. Thread-safe. The same
 * rules as for {@link OutboxPublisher} hold, and the same rows are written.
 *
 * <p>Nothing happens until the returned publisher is subscribed to; each subscription publishes
 * once.
 */
public interface ReactiveOutboxPublisher {

  /**
   * Publishes one message.
   *
   * @param connection the caller's, in a transaction
   * @param message the message
   * @return emits the new row, or that there was no need of one
   */
  Publisher<Published> publish(Connection connection, OutboxMessage message);

  /**
   * Publishes messages in one statement.
   *
   * @param connection the caller's, in a transaction
   * @param messages the messages, of any queues; may be empty
   * @return emits what became of each, in their order
   */
  Publisher<Published> publish(Connection connection, Collection<OutboxMessage> messages);

  /**
   * Deletes the live row of a timer id, unless a subscriber holds it. In an ordered queue nothing
   * tells which rows are held: there it also deletes one whose handler runs.
   *
   * @param connection the caller's, in a transaction
   * @param queue the queue
   * @param timerId the timer id
   * @return emits true if it was deleted; false if there is none, or it is being handled
   */
  Publisher<Boolean> cancelTimer(Connection connection, String queue, String timerId);
}
