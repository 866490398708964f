package dev.outbox4j.internal;

import org.jspecify.annotations.Nullable;

/** Replaces line breaks and control characters, so that foreign text cannot forge a log line. */
public final class OneLine {
  private OneLine() {}

  public static String of(@Nullable String text) {
    if (text == null) {
      return "null";
    }
    char[] clean = null; // a copy only if needed: this is called for each message
    for (int i = 0; i < text.length(); i++) {
      if (breaks(text.charAt(i))) {
        clean = clean == null ? text.toCharArray() : clean;
        clean[i] = '?';
      }
    }
    return clean == null ? text : new String(clean);
  }

  private static boolean breaks(char c) {
    return Character.isISOControl(c) || c == '\u2028' || c == '\u2029';
  }
}
