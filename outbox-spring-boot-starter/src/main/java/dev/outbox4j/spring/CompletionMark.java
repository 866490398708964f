package dev.outbox4j.spring;

import org.jspecify.annotations.Nullable;
import org.springframework.core.Ordered;
import org.springframework.transaction.ConfigurableTransactionManager;
import org.springframework.transaction.TransactionExecution;
import org.springframework.transaction.TransactionExecutionListener;
import org.springframework.transaction.support.TransactionSynchronization;
import org.springframework.transaction.support.TransactionSynchronizationManager;

/**
 * Knows that a transaction has been committed while callbacks of it still run. Spring says then
 * that the transaction is active, and its connection is still there; what is written on it now is
 * committed by accident, or rolled back when the pool takes it.
 */
final class CompletionMark implements TransactionSynchronization, Ordered {
  private boolean committed;

  private CompletionMark() {}

  /** Marks the transactions that a manager begins from now on. */
  static void addTo(ConfigurableTransactionManager transactions) {
    transactions.addListener(
        new TransactionExecutionListener() {
          @Override
          public void afterBegin(TransactionExecution transaction, @Nullable Throwable failure) {
            if (failure == null
                && transaction.isNewTransaction()
                && TransactionSynchronizationManager.isSynchronizationActive()) {
              TransactionSynchronizationManager.registerSynchronization(new CompletionMark());
            }
          }
        });
  }

  /** Tells whether the thread's transaction has ended, so that only its callbacks still run. */
  static boolean hasEnded() {
    return !TransactionSynchronizationManager.isSynchronizationActive()
        || TransactionSynchronizationManager.getSynchronizations().stream()
            .anyMatch(each -> each instanceof CompletionMark mark && mark.committed);
  }

  @Override
  public void afterCommit() {
    committed = true;
  }

  /** Before the callbacks that are to find it set. */
  @Override
  public int getOrder() {
    return HIGHEST_PRECEDENCE;
  }
}
