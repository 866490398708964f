package dev.outbox4j.spi;

import dev.outbox4j.OutboxStoreException;
import dev.outbox4j.spi.HandlerTransactions.AbortRegistration;
import dev.outbox4j.spi.HandlerTransactions.Decision;
import dev.outbox4j.spi.HandlerTransactions.End;
import java.util.concurrent.CompletionStage;

/**
 * Runs handlers that go on after they have returned, in transactions whose last statement settles
 * their row. Thread-safe.
 *
 * @param <C> what a handler writes with, such as a connection
 */
public interface ReactiveTransactions<C> extends SettlingTransactions {

  /**
   * Runs work in a new transaction. Waits until that has begun, and calls the work on the calling
   * thread. All else is as {@link HandlerTransactions#run} does it, once the work's stage has
   * completed.
   *
   * @param lease the row
   * @param owner who holds the lease, as for {@link HandlerTransactions#run}
   * @param work begins the handler; called at most once
   * @param abort told how another thread can break the transaction off, until it has ended. What is
   *     broken off is rolled back, and its stage fails; it does not wait for the work's stage
   * @return completes when the transaction has ended and its connection is free; fails as {@link
   *     HandlerTransactions#run} throws, with the same object that the work's stage failed with
   * @throws OutboxStoreException if the transaction could not be begun
   */
  CompletionStage<End> run(LeaseRef lease, String owner, Work<C> work, AbortRegistration abort);

  /**
   * What runs in a transaction.
   *
   * @param <C> what a handler writes with
   */
  @FunctionalInterface
  interface Work<C> {
    /**
     * Begins the handler.
     *
     * @param connection in the open transaction
     * @return how the transaction is to end; fails to roll back
     */
    CompletionStage<Decision> run(C connection);
  }
}
