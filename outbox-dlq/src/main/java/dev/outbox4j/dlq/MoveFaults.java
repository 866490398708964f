package dev.outbox4j.dlq;

import dev.outbox4j.spi.StoreException;
import dev.outbox4j.spi.StoreException.Fault;
import java.sql.SQLException;

/** Turns what the driver throws into what the engine acts on. */
final class MoveFaults {
  private final String outbox;
  private final String deadLetters;

  MoveFaults(String outbox, String deadLetters) {
    this.outbox = outbox;
    this.deadLetters = deadLetters;
  }

  /** A failure before the statement was sent. */
  StoreException notBegun(int rows, SQLException cause) {
    return new StoreException(
        subject(rows) + " failed, no connection could be borrowed: " + summary(cause),
        Fault.TRANSIENT,
        false,
        withoutRowData(cause));
  }

  /** A failure of the statement or of its connection. */
  StoreException failed(int rows, SQLException cause) {
    String state = state(cause);
    if (state.equals("22P02") && firstLine(cause).contains(MoveStatement.TOO_MANY)) {
      return new StoreException(
          subject(rows)
              + " was rolled back, since it would have deleted more rows than asked: "
              + summary(cause)
              + "; rows share an id, so see whether the outbox still has its primary key",
          Fault.ROW,
          false,
          withoutRowData(cause));
    }
    Fault fault = fault(state);
    boolean unknown = outcomeUnknown(state);
    return new StoreException(
        subject(rows) + " failed: " + summary(cause) + "; " + advice(state, fault, unknown),
        fault,
        unknown,
        withoutRowData(cause));
  }

  private String subject(int rows) {
    return "Moving %d row(s) from '%s' to the dead letters in '%s'"
        .formatted(rows, outbox, deadLetters);
  }

  private String advice(String state, Fault fault, boolean unknown) {
    if (state.equals("42501")) {
      return "grant the pool's user insert on '%s', select and delete on '%s', and usage on their schemas"
          .formatted(deadLetters, outbox);
    }
    if (unknown) {
      return "the connection was lost, so the rows may have been moved";
    }
    return switch (fault) {
      case SETUP ->
          "the rows stay in the outbox; apply the migrations, or correct the table's name or schema";
      case ROW ->
          "the rows stay in the outbox; see which constraint or trigger of '%s' refuses them"
              .formatted(deadLetters);
      case TRANSIENT -> "the rows stay in the outbox and can be moved again";
    };
  }

  private static Fault fault(String state) {
    if (state.startsWith("22") || state.startsWith("23") || state.equals("P0001")) {
      return Fault.ROW;
    }
    if (state.startsWith("42") || state.equals("3F000")) {
      return Fault.SETUP;
    }
    return Fault.TRANSIENT;
  }

  // a server that shuts down or ends a session can do so between its commit and its answer
  private static boolean outcomeUnknown(String state) {
    return state.isEmpty()
        || state.startsWith("08")
        || state.equals("57P01")
        || state.equals("57P02")
        || state.equals("40003");
  }

  private static String state(SQLException cause) {
    String state = cause.getSQLState();
    return state == null ? "" : state;
  }

  private static String summary(SQLException cause) {
    return firstLine(cause) + " (SQLSTATE " + cause.getSQLState() + ")";
  }

  private static String firstLine(SQLException cause) {
    String message = cause.getMessage();
    return message == null
        ? cause.getClass().getSimpleName()
        : message.lines().findFirst().orElse("");
  }

  /** Leaves out what PostgreSQL quotes of a row in the lines after the first. */
  private static SQLException withoutRowData(SQLException cause) {
    SQLException safe =
        new SQLException(
            firstLine(cause), cause.getSQLState(), cause.getErrorCode(), cause.getCause());
    safe.setStackTrace(cause.getStackTrace());
    return safe;
  }
}
