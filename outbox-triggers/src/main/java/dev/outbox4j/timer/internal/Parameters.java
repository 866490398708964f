package dev.outbox4j.timer.internal;

import java.time.Instant;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Function;
import java.util.function.ToLongFunction;
import org.jspecify.annotations.Nullable;

/** The parameters of a statement that writes many rows: an array for each column. */
final class Parameters<T> {
  private final List<T> rows;
  private final Map<String, Object> values = new HashMap<>();

  private Parameters(List<T> rows) {
    this.rows = rows;
  }

  static <T> Parameters<T> of(List<T> rows) {
    return new Parameters<>(rows);
  }

  Parameters<T> texts(String name, Function<T, @Nullable String> column) {
    values.put(name, rows.stream().map(column).toArray(String[]::new));
    return this;
  }

  Parameters<T> instants(String name, Function<T, @Nullable Instant> column) {
    return texts(
        name,
        row -> {
          Instant instant = column.apply(row);
          return instant == null ? null : instant.toString();
        });
  }

  Parameters<T> numbers(String name, ToLongFunction<T> column) {
    values.put(name, rows.stream().mapToLong(column).toArray());
    return this;
  }

  Map<String, Object> values() {
    return values;
  }
}
