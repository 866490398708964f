package dev.outbox4j.internal;

import java.nio.charset.StandardCharsets;

/** Makes text fit for a PostgreSQL {@code text} column. */
public final class Utf8 {
  private static final String MARK = "…[truncated]";

  private static final int MOST_BYTES_PER_CHAR = 3;

  private Utf8() {}

  /**
   * Replaces NUL characters and lone surrogates by U+FFFD and cuts the text to so many bytes in
   * UTF-8, never inside a character, with a mark at the end of what was cut.
   */
  public static String bounded(String text, int maxBytes) {
    if (text.length() > maxBytes) { // a character takes a byte at least, so the end is cut off
      return cut(storable(text.substring(0, maxBytes)), maxBytes);
    }
    String clean = storable(text);
    if (clean.length() <= maxBytes / MOST_BYTES_PER_CHAR
        || clean.getBytes(StandardCharsets.UTF_8).length <= maxBytes) {
      return clean;
    }
    return cut(clean, maxBytes);
  }

  private static String cut(String storable, int maxBytes) {
    return prefix(storable, maxBytes - MARK.getBytes(StandardCharsets.UTF_8).length) + MARK;
  }

  /** Returns the start of a storable text that fits so many bytes in UTF-8, in whole characters. */
  public static String prefix(String text, int maxBytes) {
    byte[] bytes = text.getBytes(StandardCharsets.UTF_8);
    int end = Math.max(0, Math.min(bytes.length, maxBytes));
    while (end > 0 && end < bytes.length && (bytes[end] & 0xC0) == 0x80) {
      end--;
    }
    return new String(bytes, 0, end, StandardCharsets.UTF_8);
  }

  private static String storable(String text) {
    StringBuilder clean = null;
    for (int i = 0; i < text.length(); i++) {
      if (text.charAt(i) == '\0' || loneSurrogate(text, i)) {
        clean = clean == null ? new StringBuilder(text) : clean;
        clean.setCharAt(i, '\uFFFD');
      }
    }
    return clean == null ? text : clean.toString();
  }

  private static boolean loneSurrogate(String text, int i) {
    char c = text.charAt(i);
    if (Character.isHighSurrogate(c)) {
      return i + 1 == text.length() || !Character.isLowSurrogate(text.charAt(i + 1));
    }
    return Character.isLowSurrogate(c)
        && (i == 0 || !Character.isHighSurrogate(text.charAt(i - 1)));
  }
}
