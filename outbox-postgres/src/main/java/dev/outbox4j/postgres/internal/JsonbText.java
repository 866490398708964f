package dev.outbox4j.postgres.internal;

import java.util.LinkedHashMap;
import java.util.Map;

/**
 * Takes apart the text that PostgreSQL writes of an object in a {@code jsonb} column. It reads no
 * other JSON: numbers are normal, names are unique and strings are escaped, since the server has
 * written them. Confined to one thread.
 */
final class JsonbText {
  private final String text;
  private int at;

  private JsonbText(String text) {
    this.text = text;
  }

  /** Returns names and values; a value that is no string is its text. */
  static Map<String, String> entries(String text) {
    Map<String, String> entries = new LinkedHashMap<>();
    if (text.startsWith("{")) {
      new JsonbText(text).into(entries);
    }
    return entries;
  }

  private void into(Map<String, String> entries) {
    at = 1;
    while (skipTo('"')) {
      String name = string();
      skipPast(':');
      entries.put(name, text.charAt(at) == '"' ? string() : raw());
    }
  }

  /** To the next name, if there is one. */
  private boolean skipTo(char mark) {
    while (text.charAt(at) != mark) {
      if (text.charAt(at++) == '}') {
        return false;
      }
    }
    return true;
  }

  /** To the value. */
  private void skipPast(char mark) {
    at = text.indexOf(mark, at) + 1;
    while (text.charAt(at) == ' ') {
      at++;
    }
  }

  private String string() {
    StringBuilder string = new StringBuilder();
    for (at++; text.charAt(at) != '"'; at++) {
      string.append(text.charAt(at) == '\\' ? escaped() : text.charAt(at));
    }
    at++;
    return string.toString();
  }

  private char escaped() {
    char mark = text.charAt(++at);
    return switch (mark) {
      case 'b' -> '\b';
      case 'f' -> '\f';
      case 'n' -> '\n';
      case 'r' -> '\r';
      case 't' -> '\t';
      case 'u' -> {
        at += 4;
        yield (char) Integer.parseInt(text, at - 3, at + 1, 16);
      }
      default -> mark;
    };
  }

  /** Everything up to the end of the value, whatever is nested in it. */
  private String raw() {
    int start = at;
    int depth = 0;
    while (depth > 0 || (text.charAt(at) != ',' && text.charAt(at) != '}')) {
      switch (text.charAt(at)) {
        case '"' -> {
          string();
          at--; // the loop goes on behind the closing mark
        }
        case '{', '[' -> depth++;
        case '}', ']' -> depth--;
        default -> {}
      }
      at++;
    }
    return text.substring(start, at);
  }
}
