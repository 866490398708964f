package dev.outbox4j.spring;

import dev.outbox4j.OutboxException;
import dev.outbox4j.postgres.ManagedTransactions;
import java.sql.Connection;
import java.sql.SQLException;
import java.util.Objects;
import javax.sql.DataSource;
import org.jspecify.annotations.Nullable;
import org.postgresql.core.BaseConnection;
import org.postgresql.core.TransactionState;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.springframework.core.Ordered;
import org.springframework.jdbc.datasource.DataSourceUtils;
import org.springframework.transaction.PlatformTransactionManager;
import org.springframework.transaction.TransactionDefinition;
import org.springframework.transaction.TransactionStatus;
import org.springframework.transaction.support.DefaultTransactionDefinition;
import org.springframework.transaction.support.TransactionSynchronization;
import org.springframework.transaction.support.TransactionSynchronizationManager;

/**
 * Spring's transactions, for handlers that write in the transaction that acks their message: what
 * they do with {@code JdbcTemplate}, repositories, an {@code EntityManager} or {@link
 * OutboxTemplate} takes part in it, and so do {@code @Transactional} methods that they call.
 * Methods with {@link OutboxHandler#transactional()} run so; this is for subscribers that a service
 * builds itself: {@code Transactional.of(outbox.transactions(springTransactions), handler)}.
 * Thread-safe.
 */
public final class SpringTransactions implements ManagedTransactions {
  private static final Logger log = LoggerFactory.getLogger(SpringTransactions.class);
  private static final TransactionDefinition NEW = ofItsOwn();

  private final PlatformTransactionManager manager;
  private final DataSource dataSource;

  private SpringTransactions(PlatformTransactionManager manager, DataSource dataSource) {
    this.manager = manager;
    this.dataSource = dataSource;
  }

  /**
   * Returns the transactions of a manager. Does no I/O.
   *
   * @param manager a {@code DataSourceTransactionManager}, {@code JdbcTransactionManager} or {@code
   *     JpaTransactionManager}; a bean, if handlers publish by {@link OutboxTemplate}
   * @param dataSource the outbox's
   * @return the transactions
   * @throws OutboxException if they are not transactions of that data source
   */
  public static SpringTransactions of(PlatformTransactionManager manager, DataSource dataSource) {
    Objects.requireNonNull(manager, "manager");
    String fault = ManagedDataSource.faultOf(manager, dataSource);
    if (fault != null) {
      throw new OutboxException(
          "Handlers cannot run under "
              + ManagedDataSource.nameOf(manager)
              + ", which "
              + fault
              + "; "
              + HandlerTransactionManager.REMEDY);
    }
    return new SpringTransactions(manager, ManagedDataSource.unwrapped(dataSource));
  }

  private static TransactionDefinition ofItsOwn() {
    DefaultTransactionDefinition definition =
        new DefaultTransactionDefinition(TransactionDefinition.PROPAGATION_REQUIRES_NEW);
    definition.setName("outbox handler");
    return definition;
  }

  @Override
  public void run(Work work) throws Exception {
    Object boundBefore = TransactionSynchronizationManager.getResource(dataSource);
    TransactionStatus status = manager.getTransaction(NEW);
    End end = new End(work);
    LastWrite lastWrite;
    boolean commits;
    try {
      TransactionSynchronizationManager.registerSynchronization(end);
      Connection connection = connection(boundBefore);
      lastWrite = new LastWrite(work, status, connection);
      commits = work.handle(connection, status::flush);
      if (commits) { // behind all others, as it is the last of them
        TransactionSynchronizationManager.registerSynchronization(lastWrite);
      }
    } catch (Throwable thrown) {
      rollBack(status);
      throw thrown;
    }
    if (!commits) {
      rollBack(status);
      return;
    }
    try {
      manager.commit(status);
    } catch (RuntimeException | Error failure) {
      if (!end.committed) {
        throw failure;
      }
      log.warn(
          "A callback after the commit of a handler's transaction failed; its message is done all"
              + " the same",
          failure);
    }
    if (lastWrite.failed) { // the server has rolled it back, whatever was answered to the commit
      throw new OutboxException(
          "A statement failed between the message's end and the commit",
          new SQLException("a callback's statement failed, so all is rolled back", "25P02"));
    }
  }

  /** The one that the manager has bound, and that all of Spring uses in the transaction. */
  private Connection connection(@Nullable Object boundBefore) {
    Object bound = TransactionSynchronizationManager.getResource(dataSource);
    if (bound == null || bound == boundBefore) {
      throw new OutboxException(
          "Handlers cannot run under "
              + ManagedDataSource.nameOf(manager)
              + ", which does not bind the connection of its transactions to the outbox's data"
              + " source; let its JPA dialect be the provider's, as HibernateJpaDialect");
    }
    Connection connection = DataSourceUtils.getConnection(dataSource);
    DataSourceUtils.releaseConnection(connection, dataSource); // bound until the transaction ends
    return connection;
  }

  /** If it fails, the connection is closed, and the server rolls back. */
  private void rollBack(TransactionStatus status) {
    try {
      manager.rollback(status);
    } catch (RuntimeException | Error failure) { // would hide why it was to be rolled back
      log.debug("a handler's transaction could not be rolled back", failure);
    }
  }

  @Override
  public String toString() {
    return "Spring's transactions of " + ManagedDataSource.nameOf(manager);
  }

  /** Learns how the transaction ended, before others do and its connection is given back. */
  private static final class End implements TransactionSynchronization, Ordered {
    private final Work work;
    private boolean committed;

    End(Work work) {
      this.work = work;
    }

    @Override
    public void afterCommit() {
      committed = true;
      work.ended(false);
    }

    @Override
    public void afterCompletion(int status) {
      if (!committed) {
        work.ended(status == STATUS_ROLLED_BACK);
      }
    }

    /** Before callbacks of the service's, which may take their time. */
    @Override
    public int getOrder() {
      return HIGHEST_PRECEDENCE;
    }
  }

  /** Writes the message's end when all others have been called before the commit. */
  private static final class LastWrite implements TransactionSynchronization, Ordered {
    private final Work work;
    private final TransactionStatus status;
    private final Connection connection;
    private boolean failed;

    LastWrite(Work work, TransactionStatus status, Connection connection) {
      this.work = work;
      this.status = status;
      this.connection = connection;
    }

    /** Spring only logs what such callbacks throw, and goes on to the commit. */
    @Override
    public void beforeCompletion() {
      try {
        failed =
            connection.unwrap(BaseConnection.class).getTransactionState()
                == TransactionState.FAILED;
      } catch (SQLException e) {
        log.debug("a connection does not tell its transaction's state", e); // nor will it commit
      }
    }

    @Override
    public void beforeCommit(boolean readOnly) {
      status.flush(); // of what the others have written
      work.settle();
    }

    @Override
    public int getOrder() {
      return LOWEST_PRECEDENCE;
    }
  }
}
