package dev.outbox4j.poller.internal;

import java.math.BigDecimal;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.time.Instant;
import java.time.LocalDate;
import java.time.LocalDateTime;
import java.time.LocalTime;
import java.time.OffsetDateTime;
import java.util.Base64;
import java.util.UUID;
import org.jspecify.annotations.Nullable;

/** As what the values of columns are read, and read back from their texts in quarantine. */
enum ValueType {
  SHORT,
  INTEGER,
  LONG,
  DECIMAL,
  FLOAT,
  DOUBLE,
  BOOLEAN,
  TEXT,
  UUID,
  BYTES,
  INSTANT,
  LOCAL_DATE_TIME,
  LOCAL_DATE,
  LOCAL_TIME;

  static ValueType ofColumn(String catalogType) {
    return switch (catalogType) {
      case "smallint" -> SHORT;
      case "integer" -> INTEGER;
      case "bigint" -> LONG;
      case "numeric" -> DECIMAL;
      case "real" -> FLOAT;
      case "double precision" -> DOUBLE;
      case "boolean" -> BOOLEAN;
      case "uuid" -> UUID;
      case "bytea" -> BYTES;
      case "timestamp with time zone" -> INSTANT;
      case "timestamp without time zone" -> LOCAL_DATE_TIME;
      case "date" -> LOCAL_DATE;
      case "time without time zone" -> LOCAL_TIME;
      default -> TEXT;
    };
  }

  static ValueType of(Object value) {
    if (value instanceof Short) {
      return SHORT;
    } else if (value instanceof Integer) {
      return INTEGER;
    } else if (value instanceof Long) {
      return LONG;
    } else if (value instanceof BigDecimal) {
      return DECIMAL;
    } else if (value instanceof Float) {
      return FLOAT;
    } else if (value instanceof Double) {
      return DOUBLE;
    } else if (value instanceof Boolean) {
      return BOOLEAN;
    } else if (value instanceof UUID) {
      return UUID;
    } else if (value instanceof byte[]) {
      return BYTES;
    } else if (value instanceof Instant) {
      return INSTANT;
    } else if (value instanceof LocalDateTime) {
      return LOCAL_DATE_TIME;
    } else if (value instanceof LocalDate) {
      return LOCAL_DATE;
    } else if (value instanceof LocalTime) {
      return LOCAL_TIME;
    }
    return TEXT;
  }

  /** Reads a value of the column's type. */
  @Nullable Object read(ResultSet row, int column) throws SQLException {
    return switch (this) {
      case SHORT -> boxed(row, row.getShort(column));
      case INTEGER -> boxed(row, row.getInt(column));
      case LONG -> boxed(row, row.getLong(column));
      case DECIMAL -> decimal(row.getString(column));
      case FLOAT -> boxed(row, row.getFloat(column));
      case DOUBLE -> boxed(row, row.getDouble(column));
      case BOOLEAN -> boxed(row, row.getBoolean(column));
      case TEXT -> row.getString(column);
      case UUID -> row.getObject(column, UUID.class);
      case BYTES -> row.getBytes(column);
      case INSTANT -> {
        OffsetDateTime time = row.getObject(column, OffsetDateTime.class);
        yield time == null ? null : time.toInstant();
      }
      case LOCAL_DATE_TIME -> row.getObject(column, LocalDateTime.class);
      case LOCAL_DATE -> row.getObject(column, LocalDate.class);
      case LOCAL_TIME -> row.getObject(column, LocalTime.class);
    };
  }

  private static @Nullable Object boxed(ResultSet row, Object value) throws SQLException {
    return row.wasNull() ? null : value;
  }

  /** What is no number, as NaN and the infinities, stays a text. */
  private static @Nullable Object decimal(@Nullable String text) {
    if (text == null || text.endsWith("N") || text.endsWith("y")) {
      return text;
    }
    return new BigDecimal(text);
  }

  /** Reads a text that {@link Json} wrote, without its quotes. */
  Object fromText(String text) {
    return switch (this) {
      case SHORT -> Short.valueOf(text);
      case INTEGER -> Integer.valueOf(text);
      case LONG -> Long.valueOf(text);
      case DECIMAL -> new BigDecimal(text);
      case FLOAT -> Float.valueOf(text);
      case DOUBLE -> Double.valueOf(text);
      case BOOLEAN -> Boolean.valueOf(text);
      case TEXT -> text;
      case UUID -> java.util.UUID.fromString(text);
      case BYTES -> Base64.getDecoder().decode(text);
      case INSTANT -> Instant.parse(text);
      case LOCAL_DATE_TIME -> LocalDateTime.parse(text);
      case LOCAL_DATE -> LocalDate.parse(text);
      case LOCAL_TIME -> LocalTime.parse(text);
    };
  }
}
