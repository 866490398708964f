package dev.outbox4j.dlq;

import java.nio.charset.StandardCharsets;
import java.util.Objects;

/** The rules for what people say of what they do, and for what is said to them. */
final class Words {
  /** How the text begins that says beside a letter why it was not put back. */
  static final String NOT_REDRIVEN = "not redriven: ";

  /** What was done about a letter that was put back. */
  static final String REDRIVEN = "redriven";

  /** What was done about one that was put back with changes. */
  static final String EDITED = "changed and redriven";

  /** How the text begins that says why a letter was discarded. */
  static final String DISCARDED = "discarded: ";

  private static final int MAX_BY_BYTES = 255;
  private static final int MAX_NOTE_BYTES = 2_000;

  private Words() {}

  /** Checks who does something. */
  static String requireBy(String by) {
    return require("by", by, MAX_BY_BYTES);
  }

  /** Checks why something is done. */
  static String requireNote(String what, String note) {
    return require(what, note, MAX_NOTE_BYTES);
  }

  private static String require(String what, String text, int maxBytes) {
    Objects.requireNonNull(text, what);
    if (text.isBlank() || text.indexOf('\0') >= 0) {
      throw new IllegalArgumentException(what + " is blank or has a NUL; say it in words");
    }
    return requireShort(what, text, maxBytes);
  }

  /** Checks that a text is not too long. */
  static String requireShort(String what, String text, int maxBytes) {
    int bytes = bytes(text);
    if (bytes > maxBytes) {
      throw new IllegalArgumentException(
          "%s has %d bytes; it may have %d, so shorten it".formatted(what, bytes, maxBytes));
    }
    return text;
  }

  private static int bytes(String text) {
    return text.getBytes(StandardCharsets.UTF_8).length;
  }

  /** A text of somebody's code, so that the server takes it, and not more of it than is read. */
  static String storable(String text) {
    StringBuilder kept = new StringBuilder();
    int bytes = 0;
    for (int at = 0; at < text.length(); ) {
      int character = text.codePointAt(at);
      at += Character.charCount(character);
      boolean bad = character == 0 || (character >= 0xD800 && character <= 0xDFFF);
      String one = bad ? "?" : Character.toString(character);
      bytes += bytes(one);
      if (bytes > MAX_NOTE_BYTES) {
        break;
      }
      kept.append(one);
    }
    return kept.toString();
  }

  /** An exception in words that the server takes: its class, and its message if it has one. */
  static String of(Throwable failure) {
    String message = failure.getMessage();
    String name = failure.getClass().getName();
    return storable(message == null ? name : name + ": " + message);
  }

  /** A text on one line, for the log. */
  static String onOneLine(String text) {
    return text.replaceAll("\\p{Cntrl}|\\x{2028}|\\x{2029}", " ");
  }
}
