package dev.outbox4j.postgres.internal;

import java.sql.ResultSet;
import java.sql.SQLException;
import java.time.Duration;
import java.time.Instant;
import java.time.OffsetDateTime;
import org.jspecify.annotations.Nullable;

/** Instants and durations between Java and the server, infinite ones included. */
public final class ServerTime {
  /** A hundred years: longer ones are taken as this long, lest the server's calendar overflow. */
  private static final Duration LONGEST = Duration.ofDays(36_525);

  // what lies beyond these has no common text form; the driver gives infinity as such an instant
  private static final Instant FIRST = Instant.parse("0001-01-01T00:00:00Z");
  private static final Instant LAST = Instant.parse("9999-12-31T23:59:59Z");

  private ServerTime() {}

  /**
   * Reads an instant.
   *
   * @param row the row
   * @param column the column's number
   * @return the instant
   * @throws SQLException if it cannot be read
   */
  public static Instant read(ResultSet row, int column) throws SQLException {
    return row.getObject(column, OffsetDateTime.class).toInstant();
  }

  /**
   * Reads an instant.
   *
   * @param row the row
   * @param column the column's number
   * @return the instant; null if there is none
   * @throws SQLException if it cannot be read
   */
  public static @Nullable Instant readNullable(ResultSet row, int column) throws SQLException {
    OffsetDateTime time = row.getObject(column, OffsetDateTime.class);
    return time == null ? null : time.toInstant();
  }

  static boolean isCommon(Instant instant) {
    return !instant.isBefore(FIRST) && !instant.isAfter(LAST);
  }

  /** How long from one to the other; zero if it is later. */
  static Duration between(Instant then, Instant now) {
    return then.isAfter(now) ? Duration.ZERO : Duration.between(then, now);
  }

  /**
   * Returns seconds for make_interval.
   *
   * @param duration any
   * @return from zero to a hundred years
   */
  public static double seconds(Duration duration) {
    if (duration.isNegative()) {
      return 0;
    }
    Duration bounded = duration.compareTo(LONGEST) > 0 ? LONGEST : duration;
    return bounded.getSeconds() + bounded.getNano() / 1e9;
  }
}
