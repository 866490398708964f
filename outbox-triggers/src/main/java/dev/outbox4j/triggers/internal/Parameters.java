package dev.outbox4j.triggers.internal;

import java.time.Instant;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Function;
import java.util.function.Predicate;
import java.util.function.ToLongFunction;
import org.jspecify.annotations.Nullable;

/**
 * The parameters of a statement on many rows: an array for each column.
 *
 * @param <T> what the rows are made of
 */
public final class Parameters<T> {
  private final List<T> rows;
  private final Map<String, Object> values = new HashMap<>();

  private Parameters(List<T> rows) {
    this.rows = rows;
  }

  /** Begins with the rows. */
  public static <T> Parameters<T> of(List<T> rows) {
    return new Parameters<>(rows);
  }

  /** Adds a column of texts. */
  public Parameters<T> texts(String name, Function<T, @Nullable String> column) {
    values.put(name, rows.stream().map(column).toArray(String[]::new));
    return this;
  }

  /** Adds a column of instants, as texts. */
  public Parameters<T> instants(String name, Function<T, @Nullable Instant> column) {
    return texts(
        name,
        row -> {
          Instant instant = column.apply(row);
          return instant == null ? null : instant.toString();
        });
  }

  /** Adds a column of numbers. */
  public Parameters<T> numbers(String name, ToLongFunction<T> column) {
    values.put(name, rows.stream().mapToLong(column).toArray());
    return this;
  }

  /** Adds a column of truth values. */
  public Parameters<T> truths(String name, Predicate<T> column) {
    boolean[] truths = new boolean[rows.size()];
    for (int i = 0; i < truths.length; i++) {
      truths[i] = column.test(rows.get(i));
    }
    values.put(name, truths);
    return this;
  }

  /** {@return the values, to which more may be added} */
  public Map<String, Object> values() {
    return values;
  }
}
