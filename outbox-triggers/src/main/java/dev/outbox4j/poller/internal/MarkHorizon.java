package dev.outbox4j.poller.internal;

import dev.outbox4j.poller.Cursor;
import dev.outbox4j.poller.Position;
import dev.outbox4j.postgres.internal.Results;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.time.Duration;
import java.time.Instant;
import java.time.OffsetDateTime;
import java.time.temporal.ChronoUnit;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * Keeps below the transactions that were open when a cursor was seen.
 *
 * <ul>
 *   <li>Numbers of a sequence that are less than one that can be seen were taken before it, by
 *       transactions that were open then.
 *   <li>Who wrote a server time before the mark had begun by then; since a process takes its time a
 *       moment before it is registered, the mark is that moment, the margin, behind the clock.
 *   <li>Of cursors that ascend by another rule, who writes less than what can be seen had begun
 *       before that was committed. The same value may be written later, so the mark excludes it.
 * </ul>
 */
final class MarkHorizon implements Horizon {
  private final SourceDatabase database;
  private final SourceDescription source;
  private final Cursor cursor;
  private final String sql;
  private final Marks marks = new Marks();

  MarkHorizon(SourceDatabase database, SourceDescription source, Cursor cursor) {
    this.database = database;
    this.source = source;
    this.cursor = cursor;
    this.sql = HorizonSql.start(source) + ";\n" + HorizonSql.OPEN + ";\n" + HorizonSql.PREPARED;
  }

  @Override
  public Found look(Position position) {
    Reading reading = database.run("look for open transactions", sql, statement -> {}, this::read);
    if (cursor.kind() == Cursor.Kind.SERVER_TIME) {
      lookByTime(reading, position);
    } else {
      marks.look(
          reading,
          reading.greatest(),
          cursor.kind() == Cursor.Kind.SEQUENCE,
          reading.at(),
          reading.open());
    }
    return new Found(
        marks.bound(),
        reading.greatest(),
        reading.at(),
        marks.isHeldBack(),
        marks.heldBack(reading.at()),
        moreSoon(reading));
  }

  private void lookByTime(Reading reading, Position position) {
    requireClock(reading.at(), position);
    Instant mark = reading.at().minus(cursor.margin()).truncatedTo(ChronoUnit.MICROS);
    List<OpenTransaction> before =
        reading.open().stream()
            .filter(each -> each.began() == null || !each.began().isAfter(mark))
            .toList();
    marks.look(reading, source.cursor().type().text(mark), true, mark, before);
  }

  /** What is written by a clock that was set back would be before the position. */
  private void requireClock(Instant now, Position position) {
    position
        .cursor()
        .map(Instant::parse)
        .filter(at -> at.isAfter(now))
        .ifPresent(
            at -> {
              throw new SourceException(
                  "the source's clock says %s and the position is %s: what is written until then would be"
                          .formatted(now, at)
                      + " before the position and never handled. If the clock was set back, set the"
                      + " position to the time from which on it was, by PollerControl.set");
            });
  }

  private long moreSoon(Reading reading) {
    if (cursor.kind() != Cursor.Kind.SERVER_TIME || reading.greatest() == null) {
      return 0;
    }
    Instant greatest = Instant.parse(reading.greatest());
    Duration left = Duration.between(reading.at().minus(cursor.margin()), greatest);
    boolean soon = !left.isNegative() && left.compareTo(cursor.margin()) <= 0;
    return soon ? left.toMillis() + 1 : 0;
  }

  private Reading read(Results results) throws SQLException {
    ResultSet start = results.rows();
    start.next();
    Instant at = start.getObject(1, OffsetDateTime.class).toInstant();
    if (start.getBoolean(2)) {
      throw new SourceException(
          "the source is a standby, on which the transactions of its primary cannot be seen; let the"
              + " pool lead to the primary, or use Cursor.transactionId(...)");
    }
    int self = start.getInt(3);
    String greatest = null;
    if (start.getObject(4) != null) {
      greatest = source.cursor().type().text(source.cursor().type().read(start, 4));
    }
    List<OpenTransaction> open = open(results.next().rows());
    if (!open.removeIf(each -> each.process() == self)) {
      throw new SourceException(
          "the server does not show which transactions are open: the reader's own is missing in"
              + " pg_locks. Let its role read pg_locks and pg_stat_activity, or use"
              + " Cursor.transactionId(...)");
    }
    return new Reading(at, greatest, open, prepared(results.next().rows()));
  }

  private static List<OpenTransaction> open(ResultSet rows) throws SQLException {
    List<OpenTransaction> open = new ArrayList<>();
    while (rows.next()) {
      open.add(
          new OpenTransaction(
              rows.getString(1), rows.getInt(2), rows.getString(3), instant(rows, 4)));
    }
    return open;
  }

  private static List<OpenTransaction> prepared(ResultSet rows) throws SQLException {
    List<OpenTransaction> prepared = new ArrayList<>();
    while (rows.next()) {
      String name = rows.getString(2) + " (" + rows.getString(1) + ")";
      prepared.add(new OpenTransaction(name, 0, null, instant(rows, 3)));
    }
    return prepared;
  }

  private static @Nullable Instant instant(ResultSet rows, int column) throws SQLException {
    OffsetDateTime time = rows.getObject(column, OffsetDateTime.class);
    return time == null ? null : time.toInstant();
  }
}
