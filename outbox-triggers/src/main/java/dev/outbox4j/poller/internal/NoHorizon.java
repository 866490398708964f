package dev.outbox4j.poller.internal;

import dev.outbox4j.poller.Position;
import java.sql.ResultSet;
import java.time.OffsetDateTime;
import java.util.Optional;

/** Handles what can be seen, since writers never overlap. */
final class NoHorizon implements Horizon {
  private final SourceDatabase database;
  private final SourceDescription source;

  NoHorizon(SourceDatabase database, SourceDescription source) {
    this.database = database;
    this.source = source;
  }

  @Override
  public Found look(Position position) {
    return database.run(
        "read the source's clock",
        "select clock_timestamp(), " + HorizonSql.greatest(source),
        statement -> {},
        results -> {
          ResultSet row = results.rows();
          row.next();
          var at = row.getObject(1, OffsetDateTime.class).toInstant();
          CursorType type = source.cursor().type();
          String greatest = row.getObject(2) == null ? null : type.text(type.read(row, 2));
          return new Found(new Bound(null, true, at), greatest, at, false, Optional.empty(), 0);
        });
  }
}
