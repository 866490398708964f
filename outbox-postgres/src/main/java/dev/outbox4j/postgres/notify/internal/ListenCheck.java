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

  /**
   * A role or a database may be read-only by choice, which holds from the beginning of a session.
   * So one that could write and cannot any more is at a server that has changed, and a new one only
   * where the setting is the server's. It is looked up last: not everybody may read it.
   */
  private static final String WAS_WRITABLE = "outbox4j.was_writable";

  private static final String READ_ONLY_BY_SERVER =
      "pg_catalog.pg_is_in_recovery() or exists (select from pg_catalog.pg_settings s"
          + " where s.name = 'default_transaction_read_only'"
          + " and s.source in ('configuration file', 'command line'))";

  private ListenCheck() {}

  static String of(String channel) {
    return "do "
        + literal(
            "begin if not exists ("
                + "select from pg_catalog.pg_listening_channels() c (name) where c.name = "
                + literal(channel)
                + ") then "
                + raise(NOT_LISTENING)
                + " elsif pg_catalog.current_setting('transaction_read_only') = 'off' then"
                + " perform pg_catalog.set_config('"
                + WAS_WRITABLE
                + "', 'on', false);"
                + " elsif pg_catalog.current_setting('"
                + WAS_WRITABLE
                + "', true) = 'on' then "
                + raise(READ_ONLY)
                + " elsif "
                + READ_ONLY_BY_SERVER
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
