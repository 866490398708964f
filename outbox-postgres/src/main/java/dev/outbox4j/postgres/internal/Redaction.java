package dev.outbox4j.postgres.internal;

import java.sql.SQLException;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;

/**
 * Keeps values out of what is logged: a server's error carries the offending row or key in its
 * detail, a driver's error may carry the URL.
 */
final class Redaction {
  private static final Pattern URL = Pattern.compile("\\b(jdbc|r2dbc|postgres|postgresql):\\S+");
  private static final Pattern QUOTED = Pattern.compile("\"[^\"]*\"|'[^']*'");
  private static final int LONGEST = 300;

  private Redaction() {}

  /** The words of a failure that hold no values; empty if that cannot be told. */
  static String text(SQLException e) {
    for (Throwable link : SqlChain.of(e)) {
      String words = ServerWords.of(link);
      if (words != null) {
        // data exceptions quote the offending value; elsewhere quotes hold identifiers
        String state = ((SQLException) link).getSQLState();
        return shortened(
            state != null && state.startsWith("22")
                ? QUOTED.matcher(words).replaceAll("\"…\"")
                : words);
      }
    }
    String state = SqlFaults.state(e);
    return state == null || state.startsWith("08") ? shortened(safe(e.getMessage())) : "";
  }

  /** The failure itself if it may be logged, otherwise a copy of it without the values. */
  static Throwable redact(SQLException e) {
    if (SqlChain.of(e).stream().noneMatch(Redaction::tells)) {
      return e;
    }
    SQLException copy = new SQLException(text(e), SqlFaults.state(e), e.getErrorCode());
    copy.setStackTrace(e.getStackTrace());
    return copy;
  }

  private static boolean tells(Throwable link) {
    if (ServerWords.of(link) != null) {
      return ServerWords.withValues(link);
    }
    String message = link.getMessage();
    return link instanceof java.sql.BatchUpdateException
        || (message != null && URL.matcher(message).find());
  }

  private static String safe(@Nullable String message) {
    return message == null ? "" : URL.matcher(message).replaceAll("$1:…");
  }

  private static String shortened(String text) {
    String line = text.lines().findFirst().orElse("").strip();
    return line.length() <= LONGEST ? line : line.substring(0, LONGEST) + "…";
  }
}
