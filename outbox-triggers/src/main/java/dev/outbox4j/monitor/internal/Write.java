package dev.outbox4j.monitor.internal;

import dev.outbox4j.spi.HandlerTransactions.Decision;
import java.sql.Connection;
import java.sql.SQLException;
import org.jspecify.annotations.Nullable;

/** What is written in the transaction that ends a wake, or puts it off. */
interface Write {
  /** {@return the instance that it is of} */
  Instance instance();

  /**
   * Writes.
   *
   * @param connection in the transaction
   * @return what becomes of the message
   */
  Decision on(Connection connection) throws SQLException;

  /** {@return the same as a row of a group; null if it is written by itself} */
  default @Nullable Again ofGroup() {
    return null;
  }

  /** It was committed, and that is known. */
  void committed();

  /**
   * The server has refused its values, or they could not be encoded.
   *
   * @param failure why
   * @return what is written in its place; null if nothing can be
   */
  @Nullable Write refused(RuntimeException failure);
}
