package dev.outbox4j.poller;

import dev.outbox4j.poller.internal.CursorType;
import java.util.List;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/**
 * A place in the order of cursor and key. Immutable.
 *
 * <p>Values of cursors are {@code Long} for {@code smallint}, {@code integer}, {@code bigint} and
 * {@code xid8}, {@code BigDecimal} for {@code numeric}, {@code Instant} for {@code timestamptz}, of
 * which microseconds count, {@code LocalDateTime} for {@code timestamp}, {@code LocalDate} for
 * {@code date}, {@code UUID}, and {@code String} for {@code text} and {@code varchar}.
 */
public final class Position {
  /** Which of the rows of a cursor are before it. */
  public enum Side {
    /** No row is before it. */
    BEGINNING,
    /** Those of lesser cursors are. */
    BEFORE,
    /** Those of this cursor are, too. */
    AFTER,
    /** It is behind a row, by its key. */
    ROW,
    /** It is behind a row of a tombstone table, by its key. */
    TOMBSTONE
  }

  private static final Position BEGINNING = new Position(Side.BEGINNING, null, null, List.of());

  private final Side side;
  private final @Nullable String type;
  private final @Nullable String cursor;
  private final List<String> key;

  private Position(Side side, @Nullable String type, @Nullable String cursor, List<String> key) {
    this.side = side;
    this.type = type;
    this.cursor = cursor;
    this.key = List.copyOf(key);
  }

  /** {@return the place before all rows} */
  public static Position beginning() {
    return BEGINNING;
  }

  /**
   * The place before all rows of a cursor.
   *
   * @param cursor its value
   * @return the place
   * @throws IllegalArgumentException if it is of no type that a cursor can have
   */
  public static Position before(Object cursor) {
    return beside(Side.BEFORE, cursor);
  }

  /**
   * The place after all rows of a cursor.
   *
   * @param cursor its value
   * @return the place
   * @throws IllegalArgumentException if it is of no type that a cursor can have
   */
  public static Position after(Object cursor) {
    return beside(Side.AFTER, cursor);
  }

  private static Position beside(Side side, Object cursor) {
    CursorType type = CursorType.of(cursor);
    return new Position(side, type.tag(), type.text(cursor), List.of());
  }

  /**
   * A place from its parts, as the record has it.
   *
   * @param side which side of the cursor
   * @param type the cursor's type, by its name in PostgreSQL; null for the beginning
   * @param cursor the cursor's text, in its canonical form; null for the beginning
   * @param key the texts of the key of a row
   * @return the place
   * @throws IllegalArgumentException if the parts do not fit together, or the text is not of its
   *     type
   */
  public static Position of(
      Side side, @Nullable String type, @Nullable String cursor, List<String> key) {
    if (side == Side.BEGINNING) {
      return BEGINNING;
    }
    if (type == null || cursor == null) {
      throw new IllegalArgumentException("position " + side + " has no cursor; it needs one");
    }
    CursorType.named(type).value(cursor); // refuses what is not of the type
    boolean ofRow = side == Side.ROW || side == Side.TOMBSTONE;
    if (ofRow == key.isEmpty()) {
      throw new IllegalArgumentException(
          "position %s at %s has a key of %d columns; a row has at least one, others have none"
              .formatted(side, cursor, key.size()));
    }
    return new Position(side, type, cursor, key);
  }

  /** {@return which of the rows of the cursor are before it} */
  public Side side() {
    return side;
  }

  /** {@return the name of the cursor's type; empty at the beginning} */
  public Optional<String> type() {
    return Optional.ofNullable(type);
  }

  /** {@return the cursor as a text: of times in UTC and microseconds; empty at the beginning} */
  public Optional<String> cursor() {
    return Optional.ofNullable(cursor);
  }

  /** {@return the cursor as a value; empty at the beginning} */
  public Optional<Object> value() {
    return type == null || cursor == null
        ? Optional.empty()
        : Optional.of(CursorType.named(type).value(cursor));
  }

  /** {@return the texts of the key of the row that it is behind; empty otherwise} */
  public List<String> key() {
    return key;
  }

  @Override
  public boolean equals(@Nullable Object other) {
    return other instanceof Position that
        && side == that.side
        && type().equals(that.type())
        && cursor().equals(that.cursor())
        && key.equals(that.key);
  }

  @Override
  public int hashCode() {
    return java.util.Objects.hash(side, type, cursor, key);
  }

  @Override
  public String toString() {
    return switch (side) {
      case BEGINNING -> "beginning";
      case BEFORE -> "before " + cursor;
      case AFTER -> "after " + cursor;
      case ROW -> "after " + cursor + " " + key;
      case TOMBSTONE -> "after tombstone " + cursor + " " + key;
    };
  }
}
