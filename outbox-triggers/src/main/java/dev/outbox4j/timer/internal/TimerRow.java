package dev.outbox4j.timer.internal;

import dev.outbox4j.postgres.internal.ServerTime;
import dev.outbox4j.timer.Cause;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.time.Duration;
import java.time.Instant;
import java.util.List;
import java.util.Locale;
import java.util.Optional;
import java.util.OptionalLong;
import org.jspecify.annotations.Nullable;

/**
 * A timer as it is read, without its runs.
 *
 * @param name its name
 * @param record what is on record
 * @param due when it is looked at next
 */
record TimerRow(String name, TimerRecord record, Optional<Instant> due) {

  static TimerRow read(ResultSet row) throws SQLException {
    Instant first = ServerTime.readNullable(row, 4);
    Instant latest = ServerTime.readNullable(row, 5);
    long limit = row.getLong(8);
    return new TimerRow(
        row.getString(1),
        new TimerRecord(
            row.getString(2),
            ServerTime.read(row, 3),
            first == null || latest == null ? null : new Missed(first, latest, row.getLong(6)),
            row.getBoolean(7),
            limit == 0 ? OptionalLong.empty() : OptionalLong.of(limit),
            row.getLong(9),
            row.getString(10),
            ServerTime.readNullable(row, 11),
            List.of()),
        Optional.ofNullable(ServerTime.readNullable(row, 12)));
  }

  boolean isOverdue(Instant since) {
    return due.isPresent() && due.get().isBefore(since);
  }

  /** Returns the record with its runs, and paused if it is to be. */
  TimerRecord with(List<OpenRun> open, boolean pausing) {
    return new TimerRecord(
        record.schedule(),
        record.cursor(),
        record.missed(),
        record.paused() || pausing,
        record.limit(),
        record.runsLeft(),
        record.deployment(),
        record.startup(),
        open);
  }

  /** {@return since when it is due; empty if it is not yet, and was taken since a run waits} */
  Optional<Instant> dueBy(Instant now) {
    return due.filter(instant -> !instant.isAfter(now));
  }

  static OpenRun readRun(ResultSet row) throws SQLException {
    return new OpenRun(
        row.getLong(2),
        ServerTime.read(row, 3),
        cause(row.getString(4)),
        row.getString(5),
        row.getBoolean(6));
  }

  /** Reads how long until a timer is due, below zero if one was already; null if none is. */
  static @Nullable Duration untilNext(ResultSet row) throws SQLException {
    double seconds = row.getDouble(1);
    return row.wasNull() ? null : Duration.ofNanos((long) (seconds * 1e9));
  }

  static Cause cause(String stored) {
    return Cause.valueOf(stored.toUpperCase(Locale.ROOT));
  }

  static String stored(Cause cause) {
    return cause.name().toLowerCase(Locale.ROOT);
  }

  static @Nullable String text(@Nullable Instant instant) {
    return instant == null ? null : instant.toString();
  }
}
