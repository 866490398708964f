package dev.outbox4j.postgres.internal.publish;

import java.util.Map;

/**
 * Headers as the server's {@code jsonb_object} takes them: an array of names and values in turn,
 * written as text, since the arrays of a batch differ in length.
 */
final class HeaderArray {
  static final String EMPTY = "{}";

  private HeaderArray() {}

  static String of(Map<String, String> headers) {
    StringBuilder text = new StringBuilder("{");
    headers.forEach(
        (name, value) -> {
          element(text, name);
          element(text, value);
        });
    return text.append('}').toString();
  }

  /** Between quotes only these two characters mean something. */
  private static void element(StringBuilder text, String value) {
    text.append(text.length() == 1 ? "\"" : ",\"");
    for (int i = 0; i < value.length(); i++) {
      char each = value.charAt(i);
      if (each == '"' || each == '\\') {
        text.append('\\');
      }
      text.append(each);
    }
    text.append('"');
  }
}
