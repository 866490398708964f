package dev.outbox4j.monitor;

import java.nio.charset.StandardCharsets;

/**
 * A text that is JSON: an input, a state, a status, an output or what an event brings. It is kept
 * as it was given, to the byte. Whether it is JSON the database tells, so a text that is none is
 * refused when it is written. {@link #toString()} gives the size only, so that a value never
 * reaches a log by accident.
 */
public final class Json {
  /** The JSON {@code null}: the input of an instance that was given none. */
  public static final Json NULL = new Json("null");

  /** The bytes that a value may have in UTF-8, if nothing else is said: {@value}. */
  public static final int MAX_BYTES = 256 * 1024;

  private final String text;

  private Json(String text) {
    this.text = text;
  }

  /**
   * Takes a text.
   *
   * @param text a JSON value
   * @return the value
   * @throws IllegalArgumentException if it is blank, has a NUL character or half of a surrogate
   *     pair, which no JSON has
   */
  public static Json of(String text) {
    if (text.isBlank()) {
      throw new IllegalArgumentException("the JSON text is blank; for nothing, give Json.NULL");
    }
    if (text.indexOf('\0') >= 0 || !StandardCharsets.UTF_8.newEncoder().canEncode(text)) {
      throw new IllegalArgumentException(
          "the JSON text has a NUL character or half of a surrogate pair; write it as UTF-8");
    }
    return new Json(text);
  }

  /** {@return the text, as it was given} */
  public String text() {
    return text;
  }

  /** {@return the number of bytes in UTF-8} */
  public int size() {
    return text.getBytes(StandardCharsets.UTF_8).length;
  }

  @Override
  public boolean equals(Object other) {
    return other instanceof Json that && text.equals(that.text);
  }

  @Override
  public int hashCode() {
    return text.hashCode();
  }

  @Override
  public String toString() {
    return "Json[" + size() + " bytes]";
  }
}
