package dev.outbox4j.spring;

import java.util.List;
import javax.sql.DataSource;
import org.jspecify.annotations.Nullable;
import org.springframework.core.Ordered;
import org.springframework.jdbc.datasource.JdbcTransactionObjectSupport;
import org.springframework.transaction.ConfigurableTransactionManager;
import org.springframework.transaction.TransactionExecution;
import org.springframework.transaction.TransactionExecutionListener;
import org.springframework.transaction.support.DefaultTransactionStatus;
import org.springframework.transaction.support.TransactionSynchronization;
import org.springframework.transaction.support.TransactionSynchronizationManager;

/**
 * The thread's innermost transaction, from its begin to its end. Spring says that a connection is
 * bound, but not to which transaction it belongs: with several transaction managers it may be one
 * of an outer transaction, and after a commit it stays bound while callbacks run.
 *
 * <p>Is bound to its thread, and unbound while the transaction is suspended.
 */
final class CurrentTransaction implements TransactionSynchronization, Ordered {
  private static final Object KEY = CurrentTransaction.class;
  private static final TransactionExecutionListener LISTENER = new Listener();

  private final TransactionExecution execution;
  private final boolean jta;
  private final List<Object> boundBefore;
  private boolean committing;
  private boolean committed;

  private CurrentTransaction(TransactionExecution execution) {
    this.execution = execution;
    this.jta = isJta(transactionObject());
    this.boundBefore =
        jta ? List.copyOf(TransactionSynchronizationManager.getResourceMap().values()) : List.of();
  }

  /** Knows from now on the transactions that the manager begins. */
  static void observe(ConfigurableTransactionManager transactions) {
    if (!transactions.getTransactionExecutionListeners().contains(LISTENER)) {
      transactions.addListener(LISTENER);
    }
  }

  /** Returns the thread's, or null if none of a known manager is active. */
  static @Nullable CurrentTransaction get() {
    return TransactionSynchronizationManager.getResource(KEY) instanceof CurrentTransaction current
        ? current
        : null;
  }

  private @Nullable Object transactionObject() {
    return execution instanceof DefaultTransactionStatus status && status.hasTransaction()
        ? status.getTransaction()
        : null;
  }

  // by name: the class cannot be loaded without the API of JTA
  private static boolean isJta(@Nullable Object transaction) {
    Class<?> type = transaction == null ? null : transaction.getClass();
    while (type != null
        && !type.getName().equals("org.springframework.transaction.jta.JtaTransactionObject")) {
      type = type.getSuperclass();
    }
    return type != null;
  }

  /** Tells whether it is one of JTA, which takes a connection only when it is used. */
  boolean isJta() {
    return jta;
  }

  /**
   * Tells whether the thread's connection of the data source is in this transaction, and not in one
   * around it or in none.
   */
  boolean owns(DataSource dataSource) {
    Object bound = TransactionSynchronizationManager.getResource(dataSource);
    if (jta) {
      return bound == null || boundBefore.stream().noneMatch(other -> other == bound);
    }
    return bound != null
        && transactionObject() instanceof JdbcTransactionObjectSupport transaction
        && transaction.hasConnectionHolder()
        && transaction.getConnectionHolder() == bound;
  }

  /** Tells whether its commit has begun, so that it may have ended without Spring's knowing. */
  boolean isCommitting() {
    return committing;
  }

  /** Tells whether it has ended, so that only its callbacks still run. */
  boolean hasEnded() {
    return committed;
  }

  private void bind() {
    TransactionSynchronizationManager.unbindResourceIfPossible(KEY);
    TransactionSynchronizationManager.bindResource(KEY, this);
  }

  private void unbind() {
    if (get() == this) {
      TransactionSynchronizationManager.unbindResource(KEY);
    }
  }

  @Override
  public void suspend() {
    unbind();
  }

  @Override
  public void resume() {
    bind();
  }

  @Override
  public void afterCommit() {
    committed = true;
  }

  @Override
  public void afterCompletion(int status) {
    unbind();
  }

  /** Before the callbacks that are to find it ended. */
  @Override
  public int getOrder() {
    return HIGHEST_PRECEDENCE;
  }

  private static final class Listener implements TransactionExecutionListener {
    @Override
    public void afterBegin(TransactionExecution execution, @Nullable Throwable failure) {
      if (failure == null
          && execution.isNewTransaction()
          && TransactionSynchronizationManager.isSynchronizationActive()) {
        CurrentTransaction begun = new CurrentTransaction(execution);
        TransactionSynchronizationManager.registerSynchronization(begun);
        begun.bind();
      }
    }

    @Override
    public void beforeCommit(TransactionExecution execution) {
      CurrentTransaction current = get();
      if (current != null && current.execution == execution) {
        current.committing = true;
      }
    }
  }
}
