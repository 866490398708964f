package dev.outbox4j.postgres.internal;

import dev.outbox4j.OutboxException;
import java.sql.BatchUpdateException;
import java.sql.SQLException;
import java.util.ArrayDeque;
import java.util.Collections;
import java.util.Deque;
import java.util.IdentityHashMap;
import java.util.List;
import java.util.Set;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;

/**
 * Keeps values out of what is logged and thrown: a server's error carries the offending row or key
 * in its detail, a driver's or a pool's error may carry the URL.
 */
public final class Redaction {
  /**
   * URLs, what follows a password's name, and a user with a password before a host. To the end of
   * the line: a URL that no driver understood may hold spaces.
   */
  private static final Pattern SECRET =
      Pattern.compile(
          "(?i)\\b(jdbc|r2dbcs?|postgres|postgresql):.*|\\b(password|pwd|secret)\\s*[=:].*"
              + "|[^\\s:@]+:[^\\s@]+@.*");

  /** From the first mark on, in whatever language: the value may hold marks as well. */
  private static final Pattern QUOTED = Pattern.compile("[\"'`:«»„“”‚‘’「『].*", Pattern.DOTALL);

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
                ? QUOTED.matcher(words).replaceFirst("…")
                : words);
      }
    }
    String state = SqlFaults.state(e);
    return state == null || state.startsWith("08") ? shortened(safe(e.getMessage())) : "";
  }

  /**
   * Makes a failure fit to be logged and thrown on.
   *
   * @param e what a driver or a pool threw
   * @return the failure itself if nothing in it tells a value, otherwise a copy without the values
   */
  public static Throwable redact(Throwable e) {
    if (links(e).stream().noneMatch(Redaction::tells) && !isForeignDataException(e)) {
      return e;
    }
    Throwable copy =
        e instanceof SQLException sql
            ? new SQLException(text(sql), SqlFaults.state(sql), sql.getErrorCode())
            : new OutboxException(e.getClass().getName() + ": " + shortened(safe(e.getMessage())));
    copy.setStackTrace(e.getStackTrace());
    return copy;
  }

  /** Whether another driver than pgjdbc words a data exception, which quotes the value. */
  private static boolean isForeignDataException(Throwable e) {
    String state = e instanceof SQLException sql ? SqlFaults.state(sql) : null;
    return state != null
        && state.startsWith("22")
        && links(e).stream().allMatch(link -> ServerWords.of(link) == null);
  }

  /** All that is printed with a failure. */
  private static Set<Throwable> links(Throwable e) {
    Set<Throwable> links = Collections.newSetFromMap(new IdentityHashMap<>());
    Deque<Throwable> open = new ArrayDeque<>(List.of(e));
    while (!open.isEmpty()) {
      Throwable link = open.removeFirst();
      if (links.add(link)) {
        open.addAll(List.of(link.getSuppressed()));
        if (link.getCause() != null) {
          open.add(link.getCause());
        }
        if (link instanceof SQLException sql && sql.getNextException() != null) {
          open.add(sql.getNextException());
        }
      }
    }
    return links;
  }

  private static boolean tells(Throwable link) {
    if (ServerWords.of(link) != null) {
      return ServerWords.withValues(link);
    }
    String message = link.getMessage();
    return link instanceof BatchUpdateException
        || (message != null && SECRET.matcher(message).find());
  }

  private static String safe(@Nullable String message) {
    return message == null ? "" : SECRET.matcher(message).replaceAll("$1$2:…");
  }

  private static String shortened(String text) {
    String line = text.lines().findFirst().orElse("").strip();
    return line.length() <= LONGEST ? line : line.substring(0, LONGEST) + "…";
  }
}
