package dev.outbox4j.postgres.internal;

import java.util.AbstractMap;
import java.util.Collections;
import java.util.Map;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/**
 * The headers of a row, read from the server's rendering of {@code jsonb} when first asked for.
 * Values that are not strings become their JSON text; a document that is not an object has no
 * headers. Immutable and thread-safe.
 */
public final class JsonHeaders extends AbstractMap<String, String> {
  private final String json;
  private volatile @Nullable Map<String, String> decoded;

  private JsonHeaders(String json) {
    this.json = json;
  }

  /**
   * Returns the headers.
   *
   * @param json as the server renders it; null for none
   * @return the headers, unmodifiable
   */
  public static Map<String, String> of(@Nullable String json) {
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
      map = Collections.unmodifiableMap(JsonbText.entries(json));
      decoded = map;
    }
    return map;
  }
}
