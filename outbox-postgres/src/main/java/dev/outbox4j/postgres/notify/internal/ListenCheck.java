package dev.outbox4j.postgres.notify.internal;

/**
 * A statement that fails, in words, if its session does not listen: behind a pooler that shares
 * sessions by transaction, LISTEN takes effect in a session that another client may have next.
 */
final class ListenCheck {
  private static final String WORDS =
      "LISTEN was accepted, but this session does not listen: between here and the server is"
          + " something that shares sessions, such as a pooler by transaction; give the source a"
          + " direct connection to the server";

  private ListenCheck() {}

  static String of(String channel) {
    return "do "
        + literal(
            "begin if not exists ("
                + "select from pg_catalog.pg_listening_channels() c (name) where c.name = "
                + literal(channel)
                + ") then raise exception using message = "
                + literal(WORDS)
                + "; end if; end");
  }

  private static String literal(String text) {
    return "E'" + text.replace("\\", "\\\\").replace("'", "''") + "'";
  }
}
