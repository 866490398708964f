package dev.outbox4j.poller.internal;

import dev.outbox4j.poller.Cursor;
import dev.outbox4j.poller.Position;
import java.sql.ResultSet;
import java.time.Instant;
import java.time.OffsetDateTime;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/** Handles what can be seen, since writers never overlap; but no times that are still to come. */
final class NoHorizon implements Horizon {
  private final SourceDatabase database;
  private final SourceDescription source;
  private final Cursor cursor;
  private final ServerTimes times;

  NoHorizon(SourceDatabase database, SourceDescription source, Cursor cursor) {
    this.database = database;
    this.source = source;
    this.cursor = cursor;
    this.times = ServerTimes.of(cursor, source);
  }

  @Override
  public Found look(Position position) {
    return database.run(
        "read the source's clock",
        "select clock_timestamp(), " + HorizonSql.greatest(source, cursor),
        statement -> {},
        results -> {
          ResultSet row = results.rows();
          row.next();
          var at = row.getObject(1, OffsetDateTime.class).toInstant();
          CursorType type = source.cursor().type();
          String greatest = row.getObject(2) == null ? null : type.text(type.read(row, 2));
          String upTo = null;
          if (cursor.kind() == Cursor.Kind.SERVER_TIME) {
            MarkHorizon.requireClock(times, at, position);
            upTo = times.text(at);
          }
          Bound bound = new Bound(upTo, true, at, null, null);
          return new Found(bound, greatest, at, at, false, Optional.empty(), 0);
        });
  }

  @Override
  public @Nullable Instant completeAt(String before) {
    return cursor.kind() == Cursor.Kind.SERVER_TIME ? times.instant(before) : null;
  }
}
