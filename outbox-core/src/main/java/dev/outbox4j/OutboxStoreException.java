package dev.outbox4j;

import java.util.Optional;
import org.jspecify.annotations.Nullable;

/** A statement failed. Says whether the rows, the set-up or the moment is at fault. */
public class OutboxStoreException extends OutboxException {
  private static final long serialVersionUID = 1L;

  /** What is at fault. */
  public enum Fault {
    /** No connection could be had, or it was lost: nothing is known of the rows. */
    CONNECTION,
    /** The server's state or a lost race: the same statement may succeed later. */
    TRANSIENT,
    /** The values of a row (class 22 or 23, or a trigger's exception): other rows may succeed. */
    ROW,
    /**
     * The server ended the statement because it took too long or waited too long for a lock: it was
     * rolled back, and a smaller one may succeed.
     */
    TIMEOUT,
    /** A missing table, column or grant: nothing succeeds until someone mends it. */
    SETUP
  }

  private final Fault fault;
  private final boolean outcomeUnknown;
  private final @Nullable String sqlState;

  /**
   * Creates an exception.
   *
   * @param message what failed and what to do
   * @param fault what is at fault
   * @param outcomeUnknown true if the statement may have taken effect although it failed
   * @param cause why, or null
   */
  public OutboxStoreException(
      String message, Fault fault, boolean outcomeUnknown, @Nullable Throwable cause) {
    this(message, fault, outcomeUnknown, null, cause);
  }

  /**
   * Creates an exception of a server that gave a SQLSTATE.
   *
   * @param message what failed and what to do
   * @param fault what is at fault
   * @param outcomeUnknown true if the statement may have taken effect although it failed
   * @param sqlState the server's, or null
   * @param cause why, or null
   */
  public OutboxStoreException(
      String message,
      Fault fault,
      boolean outcomeUnknown,
      @Nullable String sqlState,
      @Nullable Throwable cause) {
    super(message, cause);
    this.fault = fault;
    this.outcomeUnknown = outcomeUnknown;
    this.sqlState = sqlState;
  }

  /**
   * Tells whether the same may succeed when it is tried again, without anybody's doing: in a new
   * transaction, since PostgreSQL has ended this one.
   *
   * @return true unless a row's values or the set-up are at fault
   */
  public boolean isTransient() {
    return fault != Fault.ROW && fault != Fault.SETUP;
  }

  /**
   * {@return the <a
   * href="https://www.postgresql.org/docs/current/errcodes-appendix.html">SQLSTATE</a>, if the
   * server or the driver gave one}
   */
  public Optional<String> sqlState() {
    return Optional.ofNullable(sqlState);
  }

  /** {@return what is at fault} */
  public Fault fault() {
    return fault;
  }

  /**
   * Tells whether the statement may have taken effect: its answer was lost with the connection. A
   * row that a repeated statement then does not find may have been settled by the first one.
   *
   * @return true if the outcome is not known
   */
  public boolean outcomeUnknown() {
    return outcomeUnknown;
  }
}
