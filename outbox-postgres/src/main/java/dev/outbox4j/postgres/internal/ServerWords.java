package dev.outbox4j.postgres.internal;

import org.jspecify.annotations.Nullable;
import org.postgresql.util.PSQLException;
import org.postgresql.util.ServerErrorMessage;

/** What the server itself said, from pgjdbc's exceptions if pgjdbc is there. */
final class ServerWords {
  private static final boolean PGJDBC = pgjdbc();

  private ServerWords() {}

  /** The server's primary message, or null if the failure is not the server's. */
  static @Nullable String of(Throwable e) {
    return PGJDBC ? Pgjdbc.words(e) : null;
  }

  /** Whether the driver's text for the failure may quote rows or parameters. */
  static boolean withValues(Throwable e) {
    return PGJDBC && Pgjdbc.withValues(e);
  }

  private static boolean pgjdbc() {
    try {
      Class.forName("org.postgresql.util.PSQLException", false, ServerWords.class.getClassLoader());
      return true;
    } catch (ClassNotFoundException e) {
      return false;
    }
  }

  /** Loaded only when pgjdbc is. */
  private static final class Pgjdbc {
    static @Nullable String words(Throwable e) {
      ServerErrorMessage message = message(e);
      return message == null ? null : message.getMessage();
    }

    static boolean withValues(Throwable e) {
      ServerErrorMessage message = message(e);
      return message != null
          && (message.getDetail() != null
              || message.getWhere() != null
              || message.getInternalQuery() != null
              || "22".equals(classOf(message.getSQLState())));
    }

    private static @Nullable String classOf(@Nullable String state) {
      return state == null || state.length() < 2 ? null : state.substring(0, 2);
    }

    private static @Nullable ServerErrorMessage message(Throwable e) {
      return e instanceof PSQLException server ? server.getServerErrorMessage() : null;
    }
  }
}
