package dev.outbox4j.spring;

import dev.outbox4j.OutboxException;
import dev.outbox4j.OutboxMessage;
import dev.outbox4j.postgres.OutboxPublisher;
import dev.outbox4j.postgres.Published;
import java.sql.Connection;
import java.sql.SQLException;
import java.util.Collection;
import java.util.List;
import java.util.Objects;
import java.util.function.Function;
import javax.sql.DataSource;
import org.postgresql.core.BaseConnection;
import org.postgresql.core.TransactionState;
import org.springframework.jdbc.datasource.DataSourceUtils;
import org.springframework.jdbc.datasource.TransactionAwareDataSourceProxy;
import org.springframework.transaction.support.TransactionSynchronizationManager;
import org.springframework.util.ClassUtils;

/**
 * Publishes in the transaction that Spring manages, by JDBC or by JPA: the message is committed
 * with it, or rolled back with it. Thread-safe.
 *
 * <p>The innermost transaction of the thread counts, and its manager must be a bean of the context
 * or of a parent. All methods throw {@link OutboxException} outside a transaction, in callbacks
 * after its end, in one that is read-only, and in one of another data source, whatever the pool's
 * autocommit is. Otherwise the rules of {@link OutboxPublisher} hold.
 *
 * <p>A transaction with a timeout, such as {@code @Transactional(timeout = 5)}, bounds each
 * statement by the time that is left, as {@link org.springframework.jdbc.core.JdbcTemplate} does.
 * If none is left, the methods throw {@link
 * org.springframework.transaction.TransactionTimedOutException}.
 */
public final class OutboxTemplate {
  private static final boolean HIKARI =
      ClassUtils.isPresent(
          "com.zaxxer.hikari.HikariDataSource", OutboxTemplate.class.getClassLoader());

  private final OutboxPublisher publisher;
  private final DataSource dataSource;
  private final TransactionAwareDataSourceProxy timed;

  /**
   * Creates a template. Does no I/O.
   *
   * @param publisher what publishes
   * @param dataSource the one whose transactions are joined
   */
  public OutboxTemplate(OutboxPublisher publisher, DataSource dataSource) {
    this.publisher = Objects.requireNonNull(publisher, "publisher");
    this.dataSource = ManagedDataSource.unwrapped(Objects.requireNonNull(dataSource, "dataSource"));
    this.timed = new TransactionAwareDataSourceProxy(this.dataSource);
  }

  /** Tells whether it joins transactions of that data source. */
  boolean publishesIn(DataSource other) {
    return dataSource == ManagedDataSource.unwrapped(other);
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
    CurrentTransaction transaction = CurrentTransaction.get();
    if (!TransactionSynchronizationManager.isSynchronizationActive()
        || (transaction != null && transaction.hasEnded())) {
      throw refused(
          operation,
          "the transaction has ended, and only its callbacks still run; publish in the transaction"
              + " itself, or in a @TransactionalEventListener(phase = BEFORE_COMMIT)");
    }
    if (transaction == null) {
      throw refused(
          operation,
          "it is not known who began the transaction; declare its transaction manager as a bean"
              + " of this context or of a parent");
    }
    if (TransactionSynchronizationManager.isCurrentTransactionReadOnly()) {
      throw refused(
          operation, "the transaction is read-only; publish in one without readOnly = true");
    }
    if (!transaction.owns(dataSource)) {
      throw refused(
          operation,
          "the transaction is not one of the outbox's data source; name the transaction manager"
              + " of that data source in @Transactional");
    }
    Connection connection = DataSourceUtils.getConnection(dataSource);
    try {
      requireInTransaction(operation, transaction, connection);
      return withTimeLeft(operation, action);
    } finally {
      DataSourceUtils.releaseConnection(connection, dataSource);
    }
  }

  /** On the transaction's connection; its statements get the time that the transaction has left. */
  private <T> T withTimeLeft(String operation, Function<Connection, T> action) {
    try (Connection connection = timed.getConnection()) {
      return action.apply(connection);
    } catch (SQLException e) {
      throw new OutboxException(operation + " failed: the connection does not answer", e);
    }
  }

  /** What Spring believes is not enough where others commit: JTA, or the hooks of Hibernate. */
  private void requireInTransaction(
      String operation, CurrentTransaction transaction, Connection connection) {
    try {
      if (transaction.isJta()) {
        // XA of pgjdbc begins a transaction by a statement and leaves autocommit as it is
        if (isHikari() || (connection.getAutoCommit() && !isOpen(connection))) {
          throw refused(
              operation,
              "the connection takes no part in the JTA transaction; let the outbox's data source"
                  + " be an XA pool of the transaction manager");
        }
      } else if (connection.getAutoCommit()) {
        throw refused(
            operation,
            "the connection commits each statement by itself, so the transaction has ended;"
                + " publish in the transaction itself");
      }
      if (transaction.isCommitting() && !isOpen(connection)) {
        throw refused(
            operation,
            "the transaction is being committed, and has either ended or written nothing yet;"
                + " publish before the commit, or flush the persistence context before it");
      }
    } catch (SQLException e) {
      throw new OutboxException(operation + " failed: the connection does not answer", e);
    }
  }

  /** It knows nothing of JTA, and with autocommit off it would roll back when it is returned. */
  private boolean isHikari() {
    return HIKARI && HikariTarget.of(dataSource) != null;
  }

  /** Tells whether the driver says that the server has a transaction open. */
  private static boolean isOpen(Connection connection) throws SQLException {
    return connection.isWrapperFor(BaseConnection.class)
        && connection.unwrap(BaseConnection.class).getTransactionState() != TransactionState.IDLE;
  }

  private static OutboxException refused(String operation, String why) {
    return new OutboxException(operation + " refused: " + why);
  }
}
