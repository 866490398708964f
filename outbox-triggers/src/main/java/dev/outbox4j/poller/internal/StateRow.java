package dev.outbox4j.poller.internal;

import dev.outbox4j.poller.PollerFailure;
import dev.outbox4j.poller.Position;
import dev.outbox4j.poller.Position.Side;
import dev.outbox4j.postgres.internal.ServerTime;
import java.sql.Array;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.time.Duration;
import java.time.Instant;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/**
 * The state of a poller, as it is on record.
 *
 * @param acquired whether this node has its lease
 * @param version how often somebody has done something to it
 * @param fingerprint the fingerprint, as JSON
 * @param fingerprintParts its parts
 * @param begun whether a node has looked
 * @param stored the parts of its position, which may be of no position
 * @param endType the type of the cursor at which it ends; empty for none
 * @param endCursor the text of that
 * @param finished whether it has come to its end
 * @param owner who has it
 * @param token the token of the latest lease
 * @param paused whether it is paused
 * @param failingSince since when looks fail
 * @param failure at which step
 * @param reason why
 * @param failures how many looks in a row have failed
 * @param attempts how many attempts at the batch behind the position have failed
 * @param waiting whether the next one is still to come
 * @param leased whether the lease is not over
 * @param lag how old what is handled is, if that is known
 * @param sinceSuccess how long ago a look has succeeded, if one has
 * @param firstCursor the cursor of the first row that was handled
 * @param ownerBefore who had it before and has not released it
 * @param redrives whether rows in quarantine are to be handled again
 */
record StateRow(
    boolean acquired,
    long version,
    String fingerprint,
    Map<String, String> fingerprintParts,
    boolean begun,
    Stored stored,
    String endType,
    String endCursor,
    boolean finished,
    @Nullable String owner,
    long token,
    boolean paused,
    Optional<Instant> failingSince,
    Optional<PollerFailure> failure,
    Optional<String> reason,
    int failures,
    int attempts,
    boolean waiting,
    boolean leased,
    @Nullable Duration lag,
    @Nullable Duration sinceSuccess,
    String firstCursor,
    @Nullable String ownerBefore,
    boolean redrives) {

  /**
   * The parts of a position.
   *
   * @param side the side
   * @param type the type of the cursor; empty for none
   * @param cursor the text of the cursor
   * @param key the texts of the key
   */
  record Stored(String side, String type, String cursor, List<String> key) {
    static Stored read(ResultSet row, int first) throws SQLException {
      return new Stored(
          row.getString(first),
          row.getString(first + 1),
          row.getString(first + 2),
          texts(row.getArray(first + 3)));
    }

    /**
     * Puts them together.
     *
     * @throws IllegalArgumentException if they are of no position
     */
    Position position() {
      return Position.of(
          Side.valueOf(side), type.isEmpty() ? null : type, type.isEmpty() ? null : cursor, key);
    }

    /** For people: what is no position is told by the next look, which fails. */
    Position positionOrBeginning() {
      try {
        return position();
      } catch (IllegalArgumentException e) {
        return Position.beginning();
      }
    }
  }

  static Map<String, String> parts(ResultSet row, int column) throws SQLException {
    List<String> names = texts(row.getArray(column));
    List<String> values = texts(row.getArray(column + 1));
    Map<String, String> parts = new LinkedHashMap<>();
    for (int i = 0; i < names.size(); i++) {
      parts.put(names.get(i), values.get(i));
    }
    return parts;
  }

  static List<String> texts(Array array) throws SQLException {
    return Arrays.asList((String[]) array.getArray());
  }

  static StateRow read(ResultSet row) throws SQLException {
    boolean waiting = row.getBoolean(20); // false for null
    Duration lag = age(row, 22).orElse(null);
    Duration sinceSuccess = age(row, 24).orElse(null);
    return new StateRow(
        row.getBoolean(1),
        row.getLong(2),
        row.getString(3),
        parts(row, 27),
        row.getBoolean(4),
        Stored.read(row, 5),
        row.getString(9),
        row.getString(10),
        row.getBoolean(11),
        row.getString(12),
        row.getLong(13),
        row.getBoolean(14),
        Optional.ofNullable(ServerTime.readNullable(row, 15)),
        failure(row.getString(16)),
        Optional.ofNullable(row.getString(17)),
        row.getInt(18),
        row.getInt(19),
        waiting,
        row.getBoolean(21),
        lag,
        sinceSuccess,
        row.getString(23),
        row.getString(25),
        row.getBoolean(26));
  }

  /** Another version of the library may know other steps. */
  static Optional<PollerFailure> failure(@Nullable String name) {
    return Arrays.stream(PollerFailure.values()).filter(each -> each.name().equals(name)).findAny();
  }

  /** A number of seconds; empty if it is not on record. */
  static Optional<Duration> age(ResultSet row, int column) throws SQLException {
    double seconds = row.getDouble(column);
    return row.wasNull() ? Optional.empty() : Optional.of(duration(seconds));
  }

  private static Duration duration(double seconds) {
    return Duration.ofNanos(Math.round(Math.max(0, seconds) * 1e9));
  }
}
