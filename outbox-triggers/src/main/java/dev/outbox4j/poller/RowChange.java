package dev.outbox4j.poller;

import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/**
 * A row as it was when it was read. Of a row that is changed twice between two looks only the later
 * version is seen.
 *
 * <p>Values are {@code Short}, {@code Integer}, {@code Long}, {@code BigDecimal}, {@code Float},
 * {@code Double}, {@code Boolean}, {@code String}, {@code UUID}, {@code byte[]}, {@code Instant}
 * for {@code timestamptz}, {@code LocalDateTime} for {@code timestamp}, {@code LocalDate} and
 * {@code LocalTime}. Of every other type it is PostgreSQL's text, as a {@code String}; that of
 * {@code xid8} is a {@code String} as well. The maps cannot be changed.
 *
 * @param eventId 64 hexadecimal digits, the SHA-256 of the poller's name, source, operation, cursor
 *     in UTC and key: the same whenever this version of the row is handled again
 * @param operation what happened to it
 * @param cursor its cursor
 * @param key its key, by the names of columns, in the order of the key
 * @param after its columns, by their names, in the order of the table; of a row of a tombstone
 *     table those of that table
 * @param source where it is from: the schema and name of the table, or the name of the query
 */
public record RowChange(
    String eventId,
    RowOperation operation,
    Object cursor,
    Map<String, Object> key,
    Map<String, @Nullable Object> after,
    String source) {

  /** Copies the maps. */
  public RowChange {
    Objects.requireNonNull(cursor, "cursor");
    key = Collections.unmodifiableMap(new LinkedHashMap<>(key));
    after = Collections.unmodifiableMap(new LinkedHashMap<>(after));
  }

  /**
   * Returns the value of a column.
   *
   * @param column its name
   * @param type what it is read as, by the list above
   * @param <T> the same
   * @return the value; null if it is null
   * @throws IllegalArgumentException if there is no such column, or it is of another type
   */
  public <T> @Nullable T get(String column, Class<T> type) {
    Object value = after.get(column);
    if (value == null && !after.containsKey(column)) {
      throw new IllegalArgumentException(
          "column '%s' is not among those that are read; they are %s"
              .formatted(column, after.keySet()));
    }
    if (value != null && !type.isInstance(value)) {
      throw new IllegalArgumentException(
          "column '%s' is a %s and not a %s; ask for that type"
              .formatted(column, value.getClass().getSimpleName(), type.getSimpleName()));
    }
    return type.cast(value);
  }

  /** Shows what tells it from others, and no columns, which may be secret. */
  @Override
  public String toString() {
    return "RowChange[" + operation + " " + source + " " + key + " at " + cursor + "]";
  }
}
