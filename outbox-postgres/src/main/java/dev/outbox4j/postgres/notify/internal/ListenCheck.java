package dev.outbox4j.postgres.notify.internal;

/**
 * A statement that fails, in words, if no notification can come to its session: because it does not
 * listen, or because nobody can publish on its server.
 */
final class ListenCheck {
  /** Behind a pooler that shares sessions by transaction, another client may have the one next. */
  private static final String NOT_LISTENING =
      "LISTEN was accepted, but this session does not listen: between here and the server is"
          + " something that shares sessions, such as a pooler by transaction; give the source a"
          + " direct connection to the server";

  private static final String READ_ONLY =
      "this server has become read-only, such as a former primary that goes on beside the new one;"
          + " give the source an address that follows the primary";

  /** A session, or its role, may be read-only by choice. */
  private static final String SERVER_IS_READ_ONLY =
      "pg_catalog.current_setting('transaction_read_only') = 'on' and (pg_catalog.pg_is_in_recovery()"
          + " or exists (select from pg_catalog.pg_settings s"
          + " where s.name = 'default_transaction_read_only'"
          + " and s.source in ('configuration file', 'command line', 'global', 'database')))";

  private ListenCheck() {}

  static String of(String channel) {
    return "do "
        + literal(
            "begin if not exists ("
                + "select from pg_catalog.pg_listening_channels() c (name) where c.name = "
                + literal(channel)
                + ") then "
                + raise(NOT_LISTENING)
                + " elsif "
                + SERVER_IS_READ_ONLY
                + " then "
                + raise(READ_ONLY)
                + " end if; end");
  }

  private static String raise(String words) {
    return "raise exception using message = " + literal(words) + ";";
  }

  private static String literal(String text) {
    return "E'" + text.replace("\\", "\\\\").replace("'", "''") + "'";
  }
}
