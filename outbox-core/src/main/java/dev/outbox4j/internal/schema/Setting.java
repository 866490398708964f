package dev.outbox4j.internal.schema;

/**
 * A storage setting of a table.
 *
 * @param name its name
 * @param value ours: {@code off}, or the largest number that still does its work
 */
public record Setting(String name, String value) {

  /** Tells whether it is a switch that must be off. */
  public boolean mustBeOff() {
    return value.equals("off");
  }
}
