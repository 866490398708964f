package dev.outbox4j.postgres.internal;

import java.util.AbstractMap;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/**
 * The headers of a row, read from the server's rendering of {@code jsonb} when first asked for.
 * Values that are not strings become their JSON text, as the server renders it, whatever the size
 * of a number; a document that is not an object has no headers. Immutable and thread-safe.
 */
final class JsonHeaders extends AbstractMap<String, String> {
  private final String json;
  private volatile @Nullable Map<String, String> decoded;

  private JsonHeaders(String json) {
    this.json = json;
  }

  static Map<String, String> of(@Nullable String json) {
    return json == null || json.length() < 3 ? Map.of() : new JsonHeaders(json);
  }

  @Override
  public @Nullable String get(Object name) {
    return decoded().get(name);
  }

  @Override
  public boolean containsKey(Object name) {
    return decoded().containsKey(name);
  }

  @Override
  public int size() {
    return decoded().size();
  }

  @Override
  public Set<Entry<String, String>> entrySet() {
    return decoded().entrySet();
  }

  private Map<String, String> decoded() {
    Map<String, String> map = decoded;
    if (map == null) {
      map = Collections.unmodifiableMap(new Scanner(json).object());
      decoded = map;
    }
    return map;
  }

  /** Reads what jsonb_out writes: valid JSON in one canonical form. */
  private static final class Scanner {
    private final String json;
    private int at;

    Scanner(String json) {
      this.json = json;
    }

    Map<String, String> object() {
      Map<String, String> map = new LinkedHashMap<>();
      if (json.charAt(0) != '{') {
        return map;
      }
      at = 1;
      while (json.charAt(at) == '"') {
        String name = string();
        at += ": ".length();
        map.put(name, json.charAt(at) == '"' ? string() : raw());
        at += json.charAt(at) == ',' ? ", ".length() : 0;
      }
      return map;
    }

    private String string() {
      int start = ++at;
      while (json.charAt(at) != '"' && json.charAt(at) != '\\') {
        at++;
      }
      if (json.charAt(at) == '"') {
        return json.substring(start, at++);
      }
      StringBuilder text = new StringBuilder(json.length() - start).append(json, start, at);
      while (json.charAt(at) != '"') {
        text.append(json.charAt(at) == '\\' ? escaped() : json.charAt(at++));
      }
      at++;
      return text.toString();
    }

    private char escaped() {
      char kind = json.charAt(at + 1);
      at += 2;
      return switch (kind) {
        case 'b' -> '\b';
        case 'f' -> '\f';
        case 'n' -> '\n';
        case 'r' -> '\r';
        case 't' -> '\t';
        case 'u' -> (char) Integer.parseInt(json, at, at += 4, 16);
        default -> kind;
      };
    }

    private String raw() {
      int start = at;
      int depth = 0;
      while (depth > 0 || (json.charAt(at) != ',' && json.charAt(at) != '}')) {
        char c = json.charAt(at);
        if (c == '"') {
          string();
          continue;
        }
        depth += c == '{' || c == '[' ? 1 : c == '}' || c == ']' ? -1 : 0;
        at++;
      }
      return json.substring(start, at);
    }
  }
}
