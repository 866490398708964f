package dev.outbox4j.spring;

import dev.outbox4j.OutboxException;
import java.util.function.Supplier;

/** Names the property whose value a method refuses, in place of the method. */
final class Setting {
  private Setting() {}

  /**
   * Returns what is made of a property's value.
   *
   * @throws OutboxException if the value is refused
   */
  static <T> T of(String property, Supplier<T> made) {
    try {
      return made.get();
    } catch (IllegalArgumentException | IllegalStateException e) {
      throw new OutboxException(property + ": " + e.getMessage(), e);
    }
  }
}
