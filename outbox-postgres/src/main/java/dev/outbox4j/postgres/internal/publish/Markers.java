package dev.outbox4j.postgres.internal.publish;

import java.util.regex.MatchResult;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** The places of parameters in a statement: {@code $1}, as R2DBC has them, or JDBC's {@code ?}. */
final class Markers {
  private static final Pattern NUMBERED = Pattern.compile("\\$(\\d+)");

  private Markers() {}

  /**
   * Writes JDBC's markers for R2DBC's.
   *
   * @throws IllegalArgumentException if JDBC would bind other values: a number is not that of its
   *     place, or there is a question mark already
   */
  static String forJdbc(String sql) {
    if (sql.indexOf('?') >= 0) {
      throw new IllegalArgumentException("a statement with numbered markers has a ? as well");
    }
    Matcher markers = NUMBERED.matcher(sql);
    int place = 0;
    for (MatchResult marker : markers.results().toList()) {
      if (Integer.parseInt(marker.group(1)) != ++place) {
        throw new IllegalArgumentException(
            marker.group() + " is marker number " + place + "; JDBC counts them");
      }
    }
    return markers.replaceAll("?");
  }
}
