package dev.outbox4j.postgres.internal.transactions;

import java.sql.Connection;
import javax.sql.DataSource;

/** A handler's transaction in a database of its own, which settles no row. */
public final class PlainTransaction {
  /** How long a rollback may take until its connection is given up. */
  private static final int ROLLBACK_MILLIS = 15_000;

  private PlainTransaction() {}

  /** Work in a transaction. */
  @FunctionalInterface
  public interface Work {
    /**
     * Runs in the transaction.
     *
     * @param connection which can neither commit nor roll back
     * @return true to commit
     * @throws Exception to roll back
     */
    boolean run(Connection connection) throws Exception;
  }

  /**
   * Runs work in a new transaction.
   *
   * @param dataSource where to borrow a connection
   * @param work what to do
   * @throws Exception what the work threw, or the database
   */
  public static void run(DataSource dataSource, Work work) throws Exception {
    HandlerSession session = new HandlerSession(dataSource.getConnection());
    try {
      session.begin();
      if (session.run(work::run)) {
        session.commit();
      } else {
        session.rollBack(ROLLBACK_MILLIS);
      }
    } catch (Throwable failure) {
      session.rollBack(ROLLBACK_MILLIS);
      throw failure;
    } finally {
      session.giveBack();
    }
  }
}
