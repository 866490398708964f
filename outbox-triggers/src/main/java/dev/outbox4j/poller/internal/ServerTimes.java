package dev.outbox4j.poller.internal;

import dev.outbox4j.poller.Cursor;
import java.time.Instant;
import java.time.LocalDateTime;
import java.time.ZoneOffset;
import java.time.temporal.ChronoUnit;

/**
 * The times of a cursor that is kept by the server's clock: those of a {@code timestamp} column are
 * local ones, of a fixed offset.
 */
record ServerTimes(CursorType type, ZoneOffset offset) {
  static ServerTimes of(Cursor cursor, SourceDescription source) {
    return new ServerTimes(source.cursor().type(), cursor.offset().orElse(ZoneOffset.UTC));
  }

  /** The time of a cursor's text. */
  Instant instant(String text) {
    return type == CursorType.TIMESTAMP
        ? LocalDateTime.parse(text).toInstant(offset)
        : Instant.parse(text);
  }

  /** The cursor's text of a time, in microseconds. */
  String text(Instant time) {
    Instant micros = time.truncatedTo(ChronoUnit.MICROS);
    return type.text(
        type == CursorType.TIMESTAMP ? LocalDateTime.ofInstant(micros, offset) : micros);
  }

  /** The time of a statement, as a value of the column's type; a condition of an index takes it. */
  String nowSql() {
    return type == CursorType.TIMESTAMP
        ? "timezone(make_interval(secs => %d), statement_timestamp())"
            .formatted(offset.getTotalSeconds())
        : "statement_timestamp()";
  }
}
