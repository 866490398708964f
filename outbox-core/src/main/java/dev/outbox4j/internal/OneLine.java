package dev.outbox4j.internal;

import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;

/** Replaces line breaks and control characters, so that foreign text cannot forge a log line. */
final class OneLine {
  private static final Pattern BREAKING =
      Pattern.compile("[\\p{Cntrl}\\u0080-\\u009f\\u2028\\u2029]");

  private OneLine() {}

  static String of(@Nullable String text) {
    if (text == null) {
      return "null";
    }
    Matcher breaking = BREAKING.matcher(text);
    return breaking.find() ? breaking.replaceAll("?") : text; // nearly always, and for each message
  }
}
