package dev.outbox4j.spi;

import dev.outbox4j.OutboxStoreException;
import java.time.Duration;

/**
 * Runs handlers in transactions whose last statement settles their row. Thread-safe.
 *
 * @param <C> what a handler writes with, such as a connection
 */
public interface HandlerTransactions<C> extends SettlingTransactions {

  /**
   * Runs work in a new transaction on the calling thread. If the work says so, the row is settled
   * by the transaction's last statement, fenced by the lease, and it commits; else, and if the work
   * throws or the lease is not held any more, it rolls back. Nothing of the store's own settings is
   * in force while the work runs.
   *
   * @param lease the row
   * @param owner who holds the lease, as the row was claimed for it, or its bucket: a part of the
   *     fence, as another database may have a row with the same id and token
   * @param work runs the handler; called at most once
   * @param abort told how another thread can break the transaction off, until it has ended; that
   *     may take as long as a connection to the server, and does nothing after the end
   * @return how it ended
   * @throws OutboxStoreException if the transaction could not be begun, or not be ended as the work
   *     said, or its connection was lost or could not write when the work threw; {@link
   *     OutboxStoreException#outcomeUnknown()} tells whether it may have been committed. Nothing
   *     was committed otherwise
   * @throws Exception whatever the work threw, the same object
   */
  End run(LeaseRef lease, String owner, Work<C> work, AbortRegistration abort) throws Exception;

  /**
   * What runs in a transaction.
   *
   * @param <C> what a handler writes with
   */
  @FunctionalInterface
  interface Work<C> {
    /**
     * Runs the handler.
     *
     * @param connection in the open transaction
     * @param flush sends what the handler has written and not sent yet; to be called if the
     *     transaction is to commit, and before anything else ends it
     * @return how the transaction is to end
     * @throws Exception to roll back
     */
    Decision run(C connection, Flush flush) throws Exception;
  }

  /** Sends what was written through a layer that holds writes back, such as an entity manager. */
  @FunctionalInterface
  interface Flush {
    /** Where nothing is held back. */
    Flush NOTHING = () -> {};

    /**
     * Sends it. A failure is the handler's, as if its own statement had failed.
     *
     * @throws Exception to roll back
     */
    void run() throws Exception;
  }

  /** Takes what breaks a transaction off. */
  @FunctionalInterface
  interface AbortRegistration {
    /**
     * Takes it over.
     *
     * @param abort what breaks the transaction off
     */
    void onAbort(Runnable abort);
  }

  /** How a transaction is to end. */
  sealed interface Decision {
    /** {@return to delete the row and commit} */
    static Decision ack() {
      return Ack.INSTANCE;
    }

    /**
     * Returns the decision to make the row due again and commit.
     *
     * @param delay from the end of the transaction's work on
     * @return the decision
     */
    static Decision reschedule(Duration delay) {
      return new Reschedule(delay);
    }

    /** {@return to roll back} */
    static Decision rollBack() {
      return RollBack.INSTANCE;
    }

    /** To delete the row and commit. */
    enum Ack implements Decision {
      /** The only value. */
      INSTANCE
    }

    /**
     * To make the row due again and commit.
     *
     * @param delay how long from then
     */
    record Reschedule(Duration delay) implements Decision {}

    /** To roll back. */
    enum RollBack implements Decision {
      /** The only value. */
      INSTANCE
    }
  }

  /** How a transaction ended. */
  enum End {
    /** The row is settled, and what the work wrote is there. */
    COMMITTED,
    /** As the work said. */
    ROLLED_BACK,
    /** Rolled back: the row was not held under the lease any more. */
    LEASE_LOST
  }
}
