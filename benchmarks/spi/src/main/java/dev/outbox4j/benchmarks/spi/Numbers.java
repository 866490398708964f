package dev.outbox4j.benchmarks.spi;

import java.util.LinkedHashMap;
import java.util.Map;

/** What was measured, by name. Not thread-safe. */
public final class Numbers {
  private final Map<String, Double> values = new LinkedHashMap<>();

  /** Makes an empty set. */
  public Numbers() {}

  /**
   * Adds a number.
   *
   * @param name without spaces
   * @param value the value
   * @return this
   */
  public Numbers with(String name, double value) {
    values.put(name, value);
    return this;
  }

  /**
   * Adds a count.
   *
   * @param name without spaces
   * @param value the value
   * @return this
   */
  public Numbers with(String name, long value) {
    return with(name, (double) value);
  }

  /** {@return the numbers, in the order they came} */
  public Map<String, Double> values() {
    return values;
  }

  /** {@return the numbers on one line, as {@link #parse} reads them} */
  @Override
  public String toString() {
    StringBuilder line = new StringBuilder();
    values.forEach((name, value) -> line.append(' ').append(name).append('=').append(value));
    return line.toString().trim();
  }

  /**
   * Reads numbers.
   *
   * @param line as written by {@link #toString}
   * @return the numbers
   */
  public static Numbers parse(String line) {
    Numbers numbers = new Numbers();
    for (String pair : line.trim().split(" ", -1)) {
      int equals = pair.indexOf('=');
      if (equals > 0) {
        numbers.with(pair.substring(0, equals), Double.parseDouble(pair.substring(equals + 1)));
      }
    }
    return numbers;
  }
}
