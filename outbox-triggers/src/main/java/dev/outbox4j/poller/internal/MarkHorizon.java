package dev.outbox4j.poller.internal;

import dev.outbox4j.poller.Cursor;
import dev.outbox4j.poller.Position;
import dev.outbox4j.poller.Position.Side;
import dev.outbox4j.postgres.internal.Results;
import java.math.BigDecimal;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.time.Duration;
import java.time.Instant;
import java.time.OffsetDateTime;
import java.time.temporal.ChronoUnit;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/**
 * Keeps below what was open when a cursor was seen.
 *
 * <ul>
 *   <li>Numbers of a sequence that are less than one that can be seen were taken before it, by
 *       transactions that were open then.
 *   <li>Who writes a server time before the mark was at work by then on the message that has this
 *       time; since that can be seen a moment later only, the mark is that moment, the margin,
 *       behind the clock.
 *   <li>Of cursors that ascend by another rule, who writes less than what can be seen was at work
 *       before that was committed. What such a cursor is made of may be a clock, so who was is
 *       asked a margin later. The same value may be written later, so the mark excludes it.
 * </ul>
 */
final class MarkHorizon implements Horizon {
  private final SourceDatabase database;
  private final SourceDescription source;
  private final SourceWatch watch;
  private final Cursor cursor;
  private final ServerTimes times;
  private final String sql;
  private @Nullable Marks marks;
  private @Nullable BigDecimal given;
  private final SeenNumbers seen = new SeenNumbers();

  /** The greatest cursor, and the time of the latest look at which it was another one. */
  private @Nullable String greatestSeen;

  private @Nullable Instant lesserAt;
  private @Nullable Instant lookedAt;

  MarkHorizon(SourceDatabase database, SourceDescription source, SourceWatch watch, Cursor cursor) {
    this.database = database;
    this.source = source;
    this.watch = watch;
    this.cursor = cursor;
    this.times = ServerTimes.of(cursor, source);
    ColumnNumber counted = source.counted();
    this.sql =
        HorizonSql.start(source, cursor)
            + ";\n"
            + (counted == null ? "" : Sequences.sql(counted) + ";\n")
            + HorizonSql.SESSIONS
            + ";\n"
            + HorizonSql.PREPARED;
  }

  @Override
  public Found look(Position position) {
    long sent = System.nanoTime();
    Reading reading =
        database.run(
            "look for open transactions", sql, statement -> {}, results -> read(results, position));
    boolean byClock = cursor.kind() != Cursor.Kind.SEQUENCE;
    boolean goesOn = watch.goesOn(reading.server(), reading.at(), sent, cursor.margin(), byClock);
    Marks current = marks;
    if (current == null || !goesOn) {
      current = new Marks(reading.server());
      marks = current;
      seen.forget();
      greatestSeen = null;
      lesserAt = null;
      lookedAt = null;
    }
    see(reading);
    if (cursor.kind() == Cursor.Kind.SERVER_TIME) {
      requireClock(times, reading.at(), position);
    }
    current.look(reading, fresh(reading));
    return new Found(
        current.bound(),
        reading.greatest(),
        reading.at(),
        seenAt(reading),
        current.isHeldBack(),
        current.heldBack(reading.at()),
        moreSoon(reading, current));
  }

  private void see(Reading reading) {
    String now = reading.greatest();
    if (now != null && cursor.kind() == Cursor.Kind.SEQUENCE) {
      seen.see(reading.at(), now);
    }
    if (!Objects.equals(now, greatestSeen)) {
      greatestSeen = now;
      lesserAt = lookedAt;
    }
    lookedAt = reading.at();
  }

  /** Rows of the greatest cursor that ascends are not handled, and may have come at any time. */
  private @Nullable Instant seenAt(Reading reading) {
    boolean all = reading.greatest() == null || cursor.kind() != Cursor.Kind.ASCENDING;
    return all ? reading.at() : lesserAt;
  }

  @Override
  public @Nullable Instant completeAt(String before) {
    return switch (cursor.kind()) {
      case SERVER_TIME -> times.instant(before);
      case SEQUENCE -> seen.before(before);
      case TRANSACTION_ID, ASCENDING -> null;
    };
  }

  private @Nullable Mark fresh(Reading reading) {
    String now = reading.greatest();
    Instant at = reading.at();
    if (cursor.kind() == Cursor.Kind.SERVER_TIME) {
      Instant time = at.minus(cursor.margin()).truncatedTo(ChronoUnit.MICROS);
      return new Mark.OfTimes(at, time, times.text(time), true, time, cursor.margin());
    } else if (now == null) {
      return null;
    }
    Instant lesser = lesserAt;
    return cursor.kind() == Cursor.Kind.SEQUENCE
        ? new Mark.OfNumbers(at, now)
        : new Mark.OfTimes(
            at, at, now, false, lesser == null ? Instant.EPOCH : lesser, cursor.margin());
  }

  /** What is written by a clock that was set back would be before the position. */
  static void requireClock(ServerTimes times, Instant now, Position position) {
    position
        .cursor()
        .map(times::instant)
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

  /** When rows that can be seen are complete, unless something open holds them back. */
  private long moreSoon(Reading reading, Marks current) {
    String now = reading.greatest();
    if (now == null || isHandled(now, current.bound())) {
      return 0;
    }
    if (cursor.kind() == Cursor.Kind.SERVER_TIME) {
      Instant own = times.instant(now).plus(cursor.margin());
      if (!own.isBefore(reading.at())) {
        return millisUntil(reading, own);
      }
    }
    return current.next().map(at -> millisUntil(reading, at)).orElse(0L);
  }

  private static long millisUntil(Reading reading, Instant at) {
    return Math.max(0, Duration.between(reading.at(), at).toMillis()) + 1;
  }

  private boolean isHandled(String last, @Nullable Bound bound) {
    if (bound == null || bound.cursor() == null) {
      return false;
    }
    return cursor.kind() == Cursor.Kind.SERVER_TIME
        ? !times.instant(last).isAfter(times.instant(bound.cursor()))
        : last.equals(bound.cursor());
  }

  private Reading read(Results results, Position position) throws SQLException {
    ResultSet start = results.rows();
    start.next();
    Instant at = start.getObject(1, OffsetDateTime.class).toInstant();
    SourceServer server = SourceServer.read(start, 2);
    if (server.standby()) {
      throw new SourceException(
          "the source is a standby, on which the transactions of its primary cannot be seen; let the"
              + " pool lead to the primary, or use Cursor.transactionId(...)");
    }
    int self = start.getInt(4);
    String greatest = null;
    boolean seesAll = start.getBoolean(5);
    if (start.getObject(6) != null) {
      greatest = source.cursor().type().text(source.cursor().type().read(start, 6));
    }
    if (source.counted() != null) {
      greatest = counted(greatest, Sequences.read(results.next().rows()), position);
    }
    List<Session> sessions = sessions(results.next().rows());
    if (!sessions.removeIf(each -> each.process() == self && each.transaction() != null)) {
      throw new SourceException(
          "the server does not show which transactions are open: the reader's own is missing in"
              + " pg_locks. Let its role read pg_locks and pg_stat_activity, or use"
              + " Cursor.transactionId(...)");
    }
    if (!seesAll && cursor.kind() != Cursor.Kind.SEQUENCE) {
      warnOfHidden(sessions);
    }
    return new Reading(server, at, greatest, sessions, prepared(results.next().rows()));
  }

  private void warnOfHidden(List<Session> sessions) {
    if (sessions.stream().anyMatch(Session::hidden)) {
      watch.warnOnce(
          "hidden",
          "since when other roles are at work may not be seen: rows come %s later, and wait for each session"
                  .formatted(cursor.margin())
              + " until it was twice seen without a transaction, also if that comes one after the"
              + " other; grant pg_read_all_stats");
    }
  }

  /**
   * Numbers that the sequence has not given out yet are still to come, also below a greater one
   * that was written without it.
   */
  private @Nullable String counted(
      @Nullable String greatest, List<Sequences.Numbers> sequences, Position position) {
    BigDecimal last = sequences.size() == 1 ? sequences.get(0).last() : null;
    if (last == null) {
      return greatest;
    }
    String name = sequences.get(0).name();
    requireReached(name, last, position);
    if (given != null && last.compareTo(given) < 0) {
      marks = null; // it was set back, and gives out anew what is before them
    }
    given = last;
    if (greatest == null || new BigDecimal(greatest).compareTo(last) <= 0) {
      return greatest;
    }
    watch.warnOnce(
        "beyond " + name,
        "a row of %s has number %s, and sequence %s has given out %s: rows beyond that wait until it has"
                .formatted(source.label(), greatest, name, last.toPlainString())
            + " come so far. If they were written with numbers of their own, as by an import,"
            + " setval it to the greatest; if the column's numbers come from elsewhere, let its"
            + " default name no other sequence");
    return last.toPlainString();
  }

  private static void requireReached(String name, BigDecimal last, Position position) {
    BigDecimal reached = position.side() == Side.BEFORE ? last.add(BigDecimal.ONE) : last;
    position
        .cursor()
        .map(BigDecimal::new)
        .filter(at -> at.compareTo(reached) > 0)
        .ifPresent(
            at -> {
              throw new SourceException(
                  "the position is %s, and sequence %s has given out %s: it was set back, or its server lost"
                          .formatted(at.toPlainString(), name, last.toPlainString())
                      + " what it had committed, and what is written until then would be before the"
                      + " position and never handled. Set the position back by PollerControl.set, or"
                      + " setval the sequence");
            });
  }

  private static List<Session> sessions(ResultSet rows) throws SQLException {
    List<Session> sessions = new ArrayList<>();
    while (rows.next()) {
      sessions.add(
          new Session(
              rows.getInt(2),
              rows.getString(1),
              rows.getString(3),
              instant(rows, 4),
              instant(rows, 5),
              rows.getBoolean(6)));
    }
    return sessions;
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
