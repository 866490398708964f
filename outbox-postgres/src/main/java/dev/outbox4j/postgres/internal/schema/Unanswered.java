package dev.outbox4j.postgres.internal.schema;

import dev.outbox4j.postgres.SchemaFault;
import dev.outbox4j.postgres.internal.Remedies;
import dev.outbox4j.postgres.internal.SqlFaults;
import org.jspecify.annotations.Nullable;

/**
 * Tells that the database did not answer. Drivers and pools put addresses into their messages, so
 * only the SQLSTATE and the exception's class are shown.
 */
public final class Unanswered {
  private Unanswered() {}

  /** Returns the fault of a question that failed. */
  public static SchemaFault fault(Exception failure) {
    return new SchemaFault(
        "database", "an answer", found(failure), remedy(SqlFaults.state(failure)));
  }

  /** Tells what happened without the driver's words. */
  public static String found(Exception failure) {
    String state = SqlFaults.state(failure); // a pool's own exception may have none
    String kind = failure.getClass().getSimpleName();
    String words =
        meaning(state) + " (" + (state == null ? kind : "SQLSTATE " + state + ", " + kind) + ")";
    // what the server says of a statement names tables and functions, never itself
    return state != null && state.startsWith("42")
        ? words + ": " + String.valueOf(failure.getMessage()).lines().findFirst().orElse("")
        : words;
  }

  private static String meaning(@Nullable String state) {
    if (state == null || state.startsWith("08") || state.startsWith("57P")) {
      return "database not reachable";
    }
    if (state.equals("57014")) {
      return "no answer in time";
    }
    if (Remedies.isRefusal(state) || Remedies.isFull(state)) {
      return "database refused the connection";
    }
    return state.equals("42501") ? "permission denied" : "the statement failed";
  }

  private static String remedy(@Nullable String state) {
    if (state == null
        || state.startsWith("08")
        || state.startsWith("57P")
        || Remedies.isRefusal(state)
        || Remedies.isFull(state)) {
      return Remedies.ofNoConnection(state);
    }
    return state.equals("57014")
        ? "look for a lock on the tables or an overloaded server"
        : "look up the SQLSTATE; the server's log has the statement";
  }
}
