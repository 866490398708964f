package dev.outbox4j.postgres.jooq;

import dev.outbox4j.OutboxException;
import dev.outbox4j.OutboxMessage;
import dev.outbox4j.postgres.OutboxPublisher;
import dev.outbox4j.postgres.Published;
import dev.outbox4j.postgres.internal.Redaction;
import java.sql.Connection;
import java.sql.SQLException;
import java.util.Collection;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.Function;
import org.jooq.Configuration;
import org.jooq.exception.DataAccessException;

/**
 * Publishes messages in jOOQ's transactions, on the connection they hold. Thread-safe. The rules of
 * {@link OutboxPublisher} hold, and it throws what that throws. Works with jOOQ 3.19 and later.
 */
public final class JooqOutboxPublisher {
  private final OutboxPublisher publisher;

  private JooqOutboxPublisher(OutboxPublisher publisher) {
    this.publisher = publisher;
  }

  /**
   * Returns a publisher that publishes by another one.
   *
   * @param publisher built by {@link dev.outbox4j.postgres.PostgresOutbox#publisher}
   * @return the publisher
   */
  public static JooqOutboxPublisher of(OutboxPublisher publisher) {
    return new JooqOutboxPublisher(Objects.requireNonNull(publisher, "publisher"));
  }

  /**
   * Publishes one message.
   *
   * @param configuration the transaction's configuration, not that from which it was begun
   * @param message the message
   * @return the new row, or that there was no need of one
   */
  public Published publish(Configuration configuration, OutboxMessage message) {
    return withConnection(configuration, connection -> publisher.publish(connection, message));
  }

  /**
   * Publishes messages in one statement, as {@link OutboxPublisher#publish(Connection, Collection)}
   * does.
   *
   * @param configuration the transaction's configuration
   * @param messages the messages, of any queues; may be empty
   * @return what became of each, in their order
   */
  public List<Published> publish(Configuration configuration, Collection<OutboxMessage> messages) {
    return withConnection(configuration, connection -> publisher.publish(connection, messages));
  }

  /**
   * Deletes the live row of a timer id, unless a subscriber holds it. In an ordered queue nothing
   * tells which rows are held: there it also deletes one whose handler runs.
   *
   * @param configuration the transaction's configuration
   * @param queue the queue
   * @param timerId the timer id
   * @return true if it was deleted; false if there is none, or it is being handled
   */
  public boolean cancelTimer(Configuration configuration, String queue, String timerId) {
    return withConnection(
        configuration, connection -> publisher.cancelTimer(connection, queue, timerId));
  }

  private static <T> T withConnection(Configuration configuration, Function<Connection, T> action) {
    Objects.requireNonNull(configuration, "configuration");
    AtomicBoolean sent = new AtomicBoolean();
    try {
      return configuration
          .dsl()
          .connectionResult(
              connection -> {
                sent.set(true);
                return action.apply(connection);
              });
    } catch (DataAccessException e) {
      if (e.getCause() instanceof SQLException cause) {
        throw new OutboxException(
            sent.get()
                ? "jOOQ could not give its connection back after the statement; roll the transaction back"
                : "jOOQ could not take a connection, so nothing was sent; look at its connection provider",
            Redaction.redact(cause));
      }
      throw new OutboxException(
          "the jOOQ configuration gave no JDBC connection; pass the one of a transaction, such as dsl.transaction(tx -> publisher.publish(tx, message))",
          e);
    }
  }
}
