package dev.outbox4j.poller.internal;

import java.math.BigDecimal;
import java.math.BigInteger;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.time.DateTimeException;
import java.time.Instant;
import java.time.LocalDate;
import java.time.LocalDateTime;
import java.time.OffsetDateTime;
import java.time.ZoneOffset;
import java.time.temporal.ChronoUnit;
import java.util.UUID;
import org.jspecify.annotations.Nullable;

/**
 * The types that cursors and keys can have. Each value has one text, whatever the time zone of a
 * session and the scale of a number, which is what positions and event ids are made of.
 */
public enum CursorType {
  /** {@code smallint}, {@code integer} and {@code bigint}. */
  BIGINT("bigint", Long.class) {
    @Override
    Object parse(String text) {
      return Long.valueOf(text);
    }

    @Override
    void bind(PreparedStatement to, int index, String text) throws SQLException {
      to.setLong(index, Long.parseLong(text));
    }
  },

  /** {@code xid8}, which has no sign; that no transaction has come so far keeps it in a long. */
  XID8("xid8", Long.class) {
    @Override
    Object parse(String text) {
      return Long.valueOf(text);
    }

    @Override
    String parameter(String type) {
      return "cast(cast(cast(? as bigint) as text) as xid8)";
    }

    @Override
    void bind(PreparedStatement to, int index, String text) throws SQLException {
      to.setLong(index, Long.parseLong(text));
    }
  },

  /** {@code numeric}. */
  NUMERIC("numeric", BigDecimal.class) {
    @Override
    String format(Object value) {
      BigDecimal number = (BigDecimal) value;
      return number.signum() == 0 ? "0" : number.stripTrailingZeros().toPlainString();
    }

    @Override
    Object parse(String text) {
      return new BigDecimal(text);
    }

    @Override
    void bind(PreparedStatement to, int index, String text) throws SQLException {
      to.setBigDecimal(index, new BigDecimal(text));
    }
  },

  /** {@code timestamptz}, in microseconds. */
  TIMESTAMPTZ("timestamptz", Instant.class) {
    @Override
    String format(Object value) {
      return ((Instant) value).truncatedTo(ChronoUnit.MICROS).toString();
    }

    @Override
    Object parse(String text) {
      return Instant.parse(text);
    }

    @Override
    Object read(ResultSet row, int column) throws SQLException {
      OffsetDateTime time = require(row.getObject(column, OffsetDateTime.class));
      requireFinite(!time.equals(OffsetDateTime.MAX) && !time.equals(OffsetDateTime.MIN));
      return time.toInstant();
    }

    @Override
    void bind(PreparedStatement to, int index, String text) throws SQLException {
      to.setObject(index, Instant.parse(text).atOffset(ZoneOffset.UTC));
    }
  },

  /** {@code timestamp}, in microseconds. */
  TIMESTAMP("timestamp", LocalDateTime.class) {
    @Override
    String format(Object value) {
      return ((LocalDateTime) value).truncatedTo(ChronoUnit.MICROS).toString();
    }

    @Override
    Object parse(String text) {
      return LocalDateTime.parse(text);
    }

    @Override
    Object read(ResultSet row, int column) throws SQLException {
      LocalDateTime time = require(row.getObject(column, LocalDateTime.class));
      requireFinite(!time.equals(LocalDateTime.MAX) && !time.equals(LocalDateTime.MIN));
      return time;
    }

    @Override
    void bind(PreparedStatement to, int index, String text) throws SQLException {
      to.setObject(index, LocalDateTime.parse(text));
    }
  },

  /** {@code date}. */
  DATE("date", LocalDate.class) {
    @Override
    Object parse(String text) {
      return LocalDate.parse(text);
    }

    @Override
    Object read(ResultSet row, int column) throws SQLException {
      LocalDate day = require(row.getObject(column, LocalDate.class));
      requireFinite(!day.equals(LocalDate.MAX) && !day.equals(LocalDate.MIN));
      return day;
    }

    @Override
    void bind(PreparedStatement to, int index, String text) throws SQLException {
      to.setObject(index, LocalDate.parse(text));
    }
  },

  /** {@code uuid}. */
  UUID("uuid", UUID.class) {
    @Override
    Object parse(String text) {
      return java.util.UUID.fromString(text);
    }

    @Override
    Object read(ResultSet row, int column) throws SQLException {
      return require(row.getObject(column, UUID.class));
    }

    @Override
    void bind(PreparedStatement to, int index, String text) throws SQLException {
      to.setObject(index, java.util.UUID.fromString(text));
    }
  },

  /** {@code text} and {@code varchar}, compared by the column's collation. */
  TEXT("text", String.class) {
    @Override
    Object parse(String text) {
      return text;
    }

    @Override
    Object read(ResultSet row, int column) throws SQLException {
      return require(row.getString(column));
    }

    @Override
    void bind(PreparedStatement to, int index, String text) throws SQLException {
      to.setString(index, text);
    }
  };

  private final String tag;
  private final Class<?> javaType;

  CursorType(String tag, Class<?> javaType) {
    this.tag = tag;
    this.javaType = javaType;
  }

  /** Reads the text of a value. */
  abstract Object parse(String text);

  /** Binds a value by its text, where {@link #parameter} is. */
  abstract void bind(PreparedStatement to, int index, String text) throws SQLException;

  String format(Object value) {
    return value.toString();
  }

  Object read(ResultSet row, int column) throws SQLException {
    String text = require(row.getString(column));
    try {
      return parse(text);
    } catch (NumberFormatException e) {
      throw new NormalizeException("'" + text + "' has no place in an order");
    }
  }

  /** What stands for a value in a statement; the type is that of the column. */
  String parameter(String type) {
    return "cast(? as " + type + ")";
  }

  private static <T> T require(@Nullable T value) {
    if (value == null) {
      throw new NormalizeException("the cursor or a part of the key is null");
    }
    return value;
  }

  private static void requireFinite(boolean finite) {
    if (!finite) {
      throw new NormalizeException("an infinite time has no place in an order");
    }
  }

  /** {@return the type's name, as it is on record} */
  public String tag() {
    return tag;
  }

  /**
   * Returns the type of a value of an API.
   *
   * @param value the value
   * @return its type
   * @throws IllegalArgumentException if no cursor can have it
   */
  public static CursorType of(Object value) {
    if (value instanceof Long || value instanceof Integer || value instanceof Short) {
      return BIGINT;
    }
    for (CursorType type : values()) {
      if (type.javaType.isInstance(value)) {
        return type;
      }
    }
    throw new IllegalArgumentException(
        "a cursor cannot be a %s; give a Long, BigDecimal, Instant, LocalDateTime, LocalDate, UUID or String"
            .formatted(value.getClass().getName()));
  }

  /**
   * Returns the type of a name.
   *
   * @param tag the name, as it is on record
   * @return the type
   * @throws IllegalArgumentException if there is none
   */
  public static CursorType named(String tag) {
    for (CursorType type : values()) {
      if (type.tag.equals(tag)) {
        return type;
      }
    }
    throw new IllegalArgumentException("'" + tag + "' is no type that a cursor can have");
  }

  /** The type of a column, by its name in the catalog; null if there is none. */
  static @Nullable CursorType ofColumn(String catalogType) {
    return switch (catalogType) {
      case "smallint", "integer", "bigint" -> BIGINT;
      case "xid8" -> XID8;
      case "numeric" -> NUMERIC;
      case "timestamp with time zone" -> TIMESTAMPTZ;
      case "timestamp without time zone" -> TIMESTAMP;
      case "date" -> DATE;
      case "uuid" -> UUID;
      case "text", "character varying" -> TEXT;
      default -> null;
    };
  }

  /** Whether a position of another type has its place in the order of this one. */
  boolean takes(CursorType position) {
    return position == this || (position == BIGINT && (this == XID8 || this == NUMERIC));
  }

  /**
   * Returns the text of a value.
   *
   * @param value the value
   * @return the text, of which each value has one
   */
  public String text(Object value) {
    return format(value);
  }

  /**
   * Reads a text.
   *
   * @param text the text
   * @return the value
   * @throws IllegalArgumentException if it is not of this type
   */
  public Object value(String text) {
    try {
      Object value = parse(text);
      if (value instanceof BigDecimal number && number.precision() > 200_000) {
        throw new NumberFormatException("too long");
      }
      return value;
    } catch (DateTimeException | IllegalArgumentException e) {
      throw new IllegalArgumentException("'" + text + "' is no " + tag, e);
    }
  }

  /** How far a value lies between two others, from 0 to 1; null if that has no meaning. */
  @Nullable Double progress(String first, String at, String end) {
    BigInteger from = number(first);
    BigInteger to = number(end);
    BigInteger now = number(at);
    if (from == null || to == null || now == null || to.compareTo(from) <= 0) {
      return null;
    }
    double share = now.subtract(from).doubleValue() / to.subtract(from).doubleValue();
    return Math.max(0, Math.min(1, share));
  }

  private @Nullable BigInteger number(String text) {
    return switch (this) {
      case BIGINT, XID8 -> new BigInteger(text);
      case NUMERIC -> new BigDecimal(text).movePointRight(6).toBigInteger();
      case TIMESTAMPTZ -> micros(Instant.parse(text));
      case TIMESTAMP -> micros(LocalDateTime.parse(text).toInstant(ZoneOffset.UTC));
      case DATE -> BigInteger.valueOf(LocalDate.parse(text).toEpochDay());
      case UUID, TEXT -> null;
    };
  }

  private static BigInteger micros(Instant time) {
    return BigInteger.valueOf(time.getEpochSecond())
        .multiply(BigInteger.valueOf(1_000_000))
        .add(BigInteger.valueOf(time.getNano() / 1_000));
  }
}
