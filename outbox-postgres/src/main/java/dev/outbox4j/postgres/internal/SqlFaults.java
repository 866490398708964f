package dev.outbox4j.postgres.internal;

import dev.outbox4j.postgres.OutboxTable;
import dev.outbox4j.spi.StoreException;
import dev.outbox4j.spi.StoreException.Fault;
import java.sql.SQLException;
import java.sql.SQLTimeoutException;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/** The one place that reads SQLSTATE. */
public final class SqlFaults {
  private static final Set<String> MISSING_COLUMN = Set.of("42703");
  private static final Set<String> MISSING_TABLE = Set.of("42P01", "3F000", "42883");
  private static final Set<String> NO_GRANT = Set.of("42501");
  private static final Set<String> ROW_CLASSES = Set.of("22", "23", "44");
  private static final Set<String> ROW_STATES = Set.of("P0001");
  private static final Set<String> SERVER_GONE = Set.of("57P01", "57P02", "57P03", "40003");

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
  public static StoreException explain(String operation, OutboxTable table, SQLException e) {
    String state = state(e);
    boolean unknown =
        state == null
            || state.startsWith("08")
            || SERVER_GONE.contains(state)
            || SqlChain.any(e, SQLTimeoutException.class);
    return exception(operation, table, e, state, unknown);
  }

  /**
   * Explains why no connection could be had; nothing was sent to the server.
   *
   * @param operation what was attempted, by its verb
   * @param table the outbox it was attempted on
   * @param e what the driver or the pool threw
   * @return what to throw
   */
  public static StoreException notSent(String operation, OutboxTable table, SQLException e) {
    return new StoreException(
        operation
            + " on "
            + table
            + " failed: no connection could be had; check the server and the pool's size"
            + words(e, state(e)),
        Fault.TRANSIENT,
        false,
        Redaction.redact(e));
  }

  /**
   * Returns the SQLSTATE of a failure.
   *
   * @param e the failure
   * @return the first state found along its causes and next exceptions, or null
   */
  public static @Nullable String state(SQLException e) {
    for (Throwable link : SqlChain.of(e)) {
      if (link instanceof SQLException sql && sql.getSQLState() != null) {
        return sql.getSQLState();
      }
    }
    return null;
  }

  private static StoreException exception(
      String operation,
      OutboxTable table,
      SQLException e,
      @Nullable String state,
      boolean unknown) {
    Fault fault = fault(state);
    return new StoreException(
        operation + " on " + table + " failed: " + advice(table, state, fault) + words(e, state),
        fault,
        unknown,
        Redaction.redact(e));
  }

  private static Fault fault(@Nullable String state) {
    if (state == null || state.length() < 2) {
      return Fault.TRANSIENT;
    }
    if (state.startsWith("42") || state.equals("3F000")) {
      return Fault.SETUP;
    }
    return ROW_CLASSES.contains(state.substring(0, 2)) || ROW_STATES.contains(state)
        ? Fault.ROW
        : Fault.TRANSIENT;
  }

  private static String advice(OutboxTable table, @Nullable String state, Fault fault) {
    if (state != null && MISSING_TABLE.contains(state)) {
      return "table "
          + table
          + ", or one that belongs to it, does not exist or is not on the search path;"
          + " run the migrations, or name its schema";
    }
    if (state != null && MISSING_COLUMN.contains(state)) {
      return "table " + table + " has not the columns this version needs; run the migrations";
    }
    if (state != null && NO_GRANT.contains(state)) {
      return "a right is missing; grant the database user what it needs on table "
          + table
          + ", its sleepers and its dead letters";
    }
    return switch (fault) {
      case SETUP -> "the schema does not fit this version; run the migrations";
      case ROW -> "the server refused a row's values";
      case TRANSIENT -> "the server or the connection is in trouble, or a race was lost";
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
