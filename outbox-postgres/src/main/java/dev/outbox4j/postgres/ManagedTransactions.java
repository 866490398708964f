package dev.outbox4j.postgres;

import dev.outbox4j.spi.HandlerTransactions.Flush;
import java.sql.Connection;

/**
 * The transactions of a framework, such as Spring's, for {@link
 * PostgresOutbox#transactions(ManagedTransactions)}: the framework begins and commits them, so that
 * what it knows of as its current transaction is the handler's. They have to be local transactions
 * of the outbox's database, on one connection of pgjdbc each. Thread-safe.
 */
@FunctionalInterface
public interface ManagedTransactions {

  /**
   * Runs work in a new transaction of the calling thread, also if the thread has one already:
   *
   * <ol>
   *   <li>begins the transaction and calls {@link Work#handle}. If that throws or returns false, it
   *       rolls back;
   *   <li>else does all that the framework does before a commit, such as to flush what it holds
   *       back and to call listeners, and then calls {@link Work#settle}, once. If any of it
   *       throws, it rolls back;
   *   <li>commits, and calls {@link Work#ended} before what listens to the commit, and before it
   *       gives the connection back.
   * </ol>
   *
   * It returns normally if the transaction was committed, or rolled back because {@code handle}
   * returned false. What fails after the commit, such as a listener, is logged and not thrown.
   *
   * @param work what to do
   * @throws Exception what the work threw, or why the transaction could not be begun or committed
   */
  void run(Work work) throws Exception;

  /** What runs in a transaction. Confined to the thread that was given it. */
  interface Work {
    /**
     * Runs the handler.
     *
     * @param connection the transaction's
     * @param flush sends what the framework holds back
     * @return true to commit, false to roll back
     * @throws Exception to roll back
     */
    boolean handle(Connection connection, Flush flush) throws Exception;

    /** Writes the message's end, as the last statement before the commit; throws to roll back. */
    void settle();

    /**
     * Takes notice of the end.
     *
     * @param rolledBack whether it is sure that nothing was committed
     */
    void ended(boolean rolledBack);
  }
}
