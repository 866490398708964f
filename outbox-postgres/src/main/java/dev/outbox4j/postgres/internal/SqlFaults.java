package dev.outbox4j.postgres.internal;

import dev.outbox4j.OutboxStoreException;
import dev.outbox4j.OutboxStoreException.Fault;
import dev.outbox4j.postgres.OutboxTable;
import java.sql.SQLException;
import java.sql.SQLTimeoutException;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/** The one place that reads SQLSTATE. */
public final class SqlFaults {
  private static final Set<String> MISSING_COLUMN = Set.of("42703");
  private static final Set<String> MISSING_TABLE = Set.of("42P01", "3F000", "42883");
  private static final Set<String> NO_GRANT = Set.of("42501");
  private static final Set<String> ROW_CLASSES = Set.of("22", "23", "44", "54"); // 54: a limit
  private static final Set<String> ROW_STATES = Set.of("P0001");
  private static final Set<String> SERVER_CLASSES =
      Set.of("08", "25", "40", "53", "55", "57", "58", "XX");
  private static final Set<String> SERVER_GONE =
      Set.of("57P01", "57P02", "57P03", "57P05", "25P03", "25P04", "40003");
  private static final Set<String> TOOK_TOO_LONG = Set.of("55P03", "57014");
  private static final Set<String> PREPARED_STATEMENT = Set.of("42P05", "26000");
  private static final String READ_ONLY = "25006";
  private static final String FAILED_TRANSACTION = "25P02";
  private static final String CLOSED = "08003";
  private static final String NOT_SUPPORTED = "0A000";
  private static final String PROTOCOL_VIOLATION = "08P01";

  private SqlFaults() {}

  /**
   * Explains why a statement failed. The message holds the server's own words without their detail,
   * so never a row's values, a parameter or a URL; the cause is stripped of them too.
   *
   * @param operation what was attempted, by its verb
   * @param table the outbox it was attempted on
   * @param e what the driver or the pool threw
   * @return what to throw
   */
  public static OutboxStoreException explain(String operation, OutboxTable table, SQLException e) {
    return explain(operation, table, e, true);
  }

  /**
   * Explains why a statement of a transaction failed that was not committed. A handler that goes on
   * after one of its own statements has failed is at fault itself.
   *
   * @param operation what was attempted, by its verb
   * @param table the outbox it was attempted on
   * @param e what the driver or the pool threw
   * @return what to throw; its outcome is known
   */
  public static OutboxStoreException explainRolledBack(
      String operation, OutboxTable table, SQLException e) {
    return explain(operation, table, e, false);
  }

  /**
   * Explains why a handler's transaction was not committed. What the server checks at the commit is
   * the handler's doing, such as a deferred trigger, whose code may be any.
   *
   * @param operation what was attempted, by its verb
   * @param table the outbox it was attempted on
   * @param e what the driver or the pool threw
   * @return what to throw
   */
  public static OutboxStoreException explainCommit(
      String operation, OutboxTable table, SQLException e) {
    String state = state(e);
    boolean failedBefore = FAILED_TRANSACTION.equals(state);
    if (isLost(e, state)
        || state == null
        || (SERVER_CLASSES.contains(classOf(state)) && !failedBefore)) {
      return explain(operation, table, e);
    }
    return exception(operation, table, e, state, Fault.ROW, false);
  }

  /**
   * Explains why a handler's transaction could not write at last, on a connection that can.
   *
   * @param operation what was attempted, by its verb
   * @param table the outbox it was attempted on
   * @param e what the driver or the pool threw
   * @return what to throw; the handler is at fault
   */
  public static OutboxStoreException explainReadOnlyHandler(
      String operation, OutboxTable table, SQLException e) {
    return exception(operation, table, e, state(e), Fault.ROW, false);
  }

  private static OutboxStoreException explain(
      String operation, OutboxTable table, SQLException e, boolean mayBeCommitted) {
    String state = state(e);
    OutboxStoreException refusal = Refusal.of(operation, table, e);
    if (refusal != null) {
      return refusal;
    }
    boolean lost = isLost(e, state);
    Fault fault = lost ? Fault.CONNECTION : fault(state);
    if (!mayBeCommitted && FAILED_TRANSACTION.equals(state)) {
      fault = Fault.ROW;
    }
    return exception(operation, table, e, state, fault, lost && mayBeCommitted);
  }

  /**
   * Tells whether the connection was lost, or its answer.
   *
   * @param e what the driver or the pool threw
   * @return true if it is of no use any more
   */
  public static boolean isLost(SQLException e) {
    return isLost(e, state(e));
  }

  private static boolean isLost(SQLException e, @Nullable String state) {
    return state == null
        || state.startsWith("08")
        || SERVER_GONE.contains(state)
        || SqlChain.any(e, SQLTimeoutException.class)
        || SqlChain.any(e, OutOfMemoryError.class); // the driver's own, while it read the answer
  }

  private static String classOf(String state) {
    return state.substring(0, Math.min(2, state.length()));
  }

  /**
   * Explains why no connection could be had; nothing was sent to the server.
   *
   * @param operation what was attempted, by its verb
   * @param table the outbox it was attempted on
   * @param e what the driver or the pool threw
   * @return what to throw
   */
  public static OutboxStoreException notSent(String operation, OutboxTable table, SQLException e) {
    String state = state(e);
    return new OutboxStoreException(
        operation
            + " on "
            + table
            + " failed: no connection could be had; "
            + (state == null && Redaction.text(e).contains("has been closed")
                ? "the pool has been closed; stop the subscriber before that"
                : Remedies.ofNoConnection(state))
            + words(e, state),
        Fault.CONNECTION,
        false,
        state,
        Redaction.redact(e));
  }

  /**
   * Tells whether this server is at fault, so that another connection may reach a better one.
   *
   * @param e what the driver or the pool threw
   * @return true if the connection should not be used again
   */
  public static boolean isOfServer(SQLException e) {
    return READ_ONLY.equals(state(e));
  }

  /**
   * Returns the SQLSTATE of a failure.
   *
   * @param e the failure
   * @return the first state found along its causes and next exceptions, or null
   */
  public static @Nullable String state(Throwable e) {
    for (Throwable link : SqlChain.of(e)) {
      if (link instanceof SQLException sql && sql.getSQLState() != null) {
        return sql.getSQLState();
      }
    }
    return null;
  }

  /**
   * Looks for what the driver or the pool threw behind a framework's exception.
   *
   * @param e what the framework threw
   * @return the first along its causes, or null
   */
  public static @Nullable SQLException sqlOf(Throwable e) {
    for (Throwable link : SqlChain.of(e)) {
      if (link instanceof SQLException sql) {
        return sql;
      }
    }
    return null;
  }

  private static OutboxStoreException exception(
      String operation,
      OutboxTable table,
      SQLException e,
      @Nullable String state,
      Fault fault,
      boolean unknown) {
    return new OutboxStoreException(
        operation + " on " + table + " failed: " + advice(table, e, state, fault) + words(e, state),
        fault,
        unknown,
        state,
        Redaction.redact(e));
  }

  private static Fault fault(@Nullable String state) {
    if (state == null || state.length() < 2) {
      return Fault.TRANSIENT;
    }
    if (TOOK_TOO_LONG.contains(state)) {
      return Fault.TIMEOUT;
    }
    if (state.startsWith("42") || state.equals("3F000") || state.equals(NOT_SUPPORTED)) {
      return Fault.SETUP;
    }
    return ROW_CLASSES.contains(classOf(state)) || ROW_STATES.contains(state)
        ? Fault.ROW
        : Fault.TRANSIENT;
  }

  private static String advice(
      OutboxTable table, SQLException e, @Nullable String state, Fault fault) {
    if (state != null && MISSING_TABLE.contains(state)) {
      String migrations = Remedies.migrations(table.name(), ServerWords.of(e));
      return "a table or function that it needs does not exist or is not on the search path;"
          + " run the migrations of "
          + migrations
          + Remedies.withSpringBoot(migrations)
          + ", or correct its name or schema";
    }
    if (state != null && MISSING_COLUMN.contains(state)) {
      return "table "
          + table
          + ", or one that belongs to it, has not the columns this version needs; run the"
          + " migrations";
    }
    if (state != null && NO_GRANT.contains(state)) {
      return "a right is missing; grant the database user what it needs on table "
          + table
          + ", its sleepers and its dead letters: "
          + Remedies.migrations(table.name(), ServerWords.of(e))
          + ".grantsSql(...) prints it, and validator().checkGrants(...) says what is missing";
    }
    if (READ_ONLY.equals(state) && fault == Fault.ROW) {
      return "the handler has set its transaction read-only, and its message's end is a write; let it"
          + " set nothing of the kind";
    }
    if (READ_ONLY.equals(state)) {
      return "this server is read-only, such as a standby or a former primary, or"
          + " default_transaction_read_only is on, or the transaction was begun so, as by"
          + " @Transactional(readOnly = true); look where the address leads, at that setting of the"
          + " database and the role, and at the transaction";
    }
    if (FAILED_TRANSACTION.equals(state)) {
      return "the transaction has failed before, by another statement; roll it back, and look for what"
          + " failed first";
    }
    if (CLOSED.equals(state)) {
      return "the connection is closed";
    }
    if (state != null && PREPARED_STATEMENT.contains(state)) {
      return "prepared statements and sessions do not match, as behind a pooler that shares"
          + " sessions by transaction: let it track prepared statements, or set prepareThreshold=0";
    }
    if (NOT_SUPPORTED.equals(state)) {
      return "the server cannot run the statement on this table: look for a rule of yours on it";
    }
    if (PROTOCOL_VIOLATION.equals(state)) {
      return "the driver and the server do not understand each other; prepareThreshold must not be -1,"
          + " and a pooler must support the extended protocol";
    }
    return switch (fault) {
      case TIMEOUT ->
          "the server ended the statement, which ran or waited for a lock for too long; nothing was"
              + " changed";
      case SETUP -> "the schema does not fit this version; run the migrations";
      case ROW -> "the server refused a row's values";
      case CONNECTION -> "the server or the connection is in trouble";
      case TRANSIENT -> "the server is in trouble, or a race was lost";
    };
  }

  private static String words(SQLException e, @Nullable String state) {
    String text = Redaction.text(e);
    if (state == null && text.isEmpty()) {
      return " [" + e.getClass().getSimpleName() + "]";
    }
    return " ["
        + (state == null ? "no SQLSTATE" : state)
        + (text.isEmpty() ? "" : ": " + text)
        + "]";
  }
}
