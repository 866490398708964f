package dev.outbox4j.spi;

import java.time.Duration;
import java.util.OptionalInt;

/** Transactions of handlers whose last statement settles their row. Thread-safe. */
public interface SettlingTransactions {

  /**
   * Tells whether it settles rows of that store.
   *
   * @param store a store
   * @return true if both are of the same table
   */
  boolean settlesRowsOf(OutboxStore store);

  /**
   * {@return how long a statement may wait for the server that is not the work's; what ends a
   * transaction has two of them, and is broken off if it takes much longer}
   */
  Duration networkTimeout();

  /** {@return how many transactions can be open at once, if it can see that} */
  OptionalInt connectionLimit();

  /**
   * {@return the object that stands for the pool, as {@link OutboxStore#connectionSource()} does}
   */
  Object connectionSource();
}
