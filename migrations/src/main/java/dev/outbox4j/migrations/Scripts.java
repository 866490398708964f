package dev.outbox4j.migrations;

import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** The migrations as text. */
final class Scripts {
  /** In the order of their versions. */
  static final List<String> FILES = List.of("V1__outbox.sql");

  private static final Pattern PLACEHOLDER = Pattern.compile("\\$\\{([^}]*)}");

  private Scripts() {}

  static String resolved(Map<String, String> placeholders) {
    StringBuilder sql = new StringBuilder();
    for (String file : FILES) {
      sql.append("-- ").append(file).append('\n');
      sql.append(resolve(file, read(file), placeholders).stripTrailing()).append("\n");
    }
    return sql.toString();
  }

  private static String resolve(String file, String text, Map<String, String> placeholders) {
    return PLACEHOLDER
        .matcher(text)
        .replaceAll(
            found -> {
              String value = placeholders.get(found.group(1));
              if (value == null) {
                throw new IllegalStateException(
                    "no value for the placeholder %s of %s".formatted(found.group(), file));
              }
              return Matcher.quoteReplacement(value);
            });
  }

  private static String read(String file) {
    try (InputStream in = Scripts.class.getResourceAsStream(file)) {
      if (in == null) {
        throw new IllegalStateException(file + " is missing from the jar; is it repackaged?");
      }
      return new String(in.readAllBytes(), StandardCharsets.UTF_8);
    } catch (IOException e) {
      throw new UncheckedIOException(file + " cannot be read", e);
    }
  }
}
