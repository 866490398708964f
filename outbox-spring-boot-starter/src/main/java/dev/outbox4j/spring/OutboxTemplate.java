package dev.outbox4j.spring;

import dev.outbox4j.OutboxException;
import dev.outbox4j.OutboxMessage;
import dev.outbox4j.postgres.OutboxPublisher;
import dev.outbox4j.postgres.Published;
import java.sql.Connection;
import java.util.Collection;
import java.util.List;
import java.util.Objects;
import java.util.function.Function;
import javax.sql.DataSource;
import org.springframework.jdbc.datasource.DataSourceUtils;
import org.springframework.jdbc.datasource.TransactionAwareDataSourceProxy;
import org.springframework.transaction.support.TransactionSynchronizationManager;

/**
 * Publishes in the transaction that Spring manages, by JDBC or by JPA: the message is committed
 * with it, or rolled back with it. Thread-safe.
 *
 * <p>All methods throw {@link OutboxException} outside a transaction, in callbacks after its end,
 * in one that is read-only, and in one of another data source, whatever the pool's autocommit is.
 * Otherwise the rules of {@link OutboxPublisher} hold.
 */
public final class OutboxTemplate {
  private final OutboxPublisher publisher;
  private final DataSource dataSource;
  private final boolean boundAtBegin;

  /**
   * Creates a template. Does no I/O.
   *
   * @param publisher what publishes
   * @param dataSource the one whose transactions are joined
   * @param jta whether transactions are JTA's, which take a connection only when it is used
   */
  public OutboxTemplate(OutboxPublisher publisher, DataSource dataSource, boolean jta) {
    this.publisher = Objects.requireNonNull(publisher, "publisher");
    this.dataSource = unwrapped(Objects.requireNonNull(dataSource, "dataSource"));
    this.boundAtBegin = !jta;
  }

  // transaction managers bind the connection to the data source behind the proxy
  private static DataSource unwrapped(DataSource dataSource) {
    return dataSource instanceof TransactionAwareDataSourceProxy proxy
        ? Objects.requireNonNull(proxy.getTargetDataSource(), "target data source")
        : dataSource;
  }

  /**
   * Publishes one message.
   *
   * @param message the message
   * @return the new row, or that there was no need of one
   */
  public Published publish(OutboxMessage message) {
    return inTransaction("publish", connection -> publisher.publish(connection, message));
  }

  /**
   * Publishes messages in one statement.
   *
   * @param messages the messages, of any queues; may be empty
   * @return what became of each, in their order
   */
  public List<Published> publish(Collection<OutboxMessage> messages) {
    return inTransaction("publish", connection -> publisher.publish(connection, messages));
  }

  /**
   * Deletes the live row of a timer id, unless a subscriber holds it.
   *
   * @param queue the queue
   * @param timerId the timer id
   * @return true if it was deleted; false if there is none, or it is being handled
   */
  public boolean cancelTimer(String queue, String timerId) {
    return inTransaction(
        "cancelTimer", connection -> publisher.cancelTimer(connection, queue, timerId));
  }

  private <T> T inTransaction(String operation, Function<Connection, T> action) {
    if (!TransactionSynchronizationManager.isActualTransactionActive()) {
      throw refused(
          operation,
          "there is no transaction, so the message would not be committed together with the data"
              + " it tells of; call it from a @Transactional method that is called on the bean"
              + " from outside, or within a TransactionTemplate");
    }
    if (CompletionMark.hasEnded()) {
      throw refused(
          operation,
          "the transaction has ended, and only its callbacks still run; publish in the transaction"
              + " itself, or in a @TransactionalEventListener(phase = BEFORE_COMMIT)");
    }
    if (TransactionSynchronizationManager.isCurrentTransactionReadOnly()) {
      throw refused(
          operation, "the transaction is read-only; publish in one without readOnly = true");
    }
    if (boundAtBegin && !TransactionSynchronizationManager.hasResource(dataSource)) {
      throw refused(
          operation,
          "the transaction is not one of the outbox's data source; name the transaction manager"
              + " of that data source in @Transactional");
    }
    Connection connection = DataSourceUtils.getConnection(dataSource);
    try {
      return action.apply(connection);
    } finally {
      DataSourceUtils.releaseConnection(connection, dataSource);
    }
  }

  private static OutboxException refused(String operation, String why) {
    return new OutboxException(operation + " refused: " + why);
  }
}
