package dev.outbox4j.postgres.testing;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import java.util.TreeMap;

/**
 * A file that holds every statement as it is sent, so that a change of one is read as a change of
 * SQL. {@code -Doutbox.test.golden=write} writes the file anew.
 */
public final class GoldenFile {
  private static final String PROPERTY = "outbox.test.golden";

  private GoldenFile() {}

  /**
   * Fails if the statements are not those of the file.
   *
   * @param owner the file lies in its package, in the test resources of the module
   * @param file its name
   * @param statements the statements by their names
   */
  public static void assertSame(Class<?> owner, String file, Map<String, String> statements) {
    Path path =
        Path.of("src", "test", "resources")
            .resolve(owner.getPackageName().replace('.', '/'))
            .resolve(file);
    String rendered = text(statements);
    try {
      if (System.getProperty(PROPERTY, "").equals("write")) {
        Files.createDirectories(path.getParent());
        Files.writeString(path, rendered);
      }
      assertThat(Files.exists(path) ? Files.readString(path) : "")
          .as(
              "%s holds other statements than are rendered now; if they are as they should be,"
                  + " run %s with -D%s=write and commit the file",
              path, owner.getSimpleName(), PROPERTY)
          .isEqualTo(rendered);
    } catch (IOException e) {
      throw new AssertionError(path.toString(), e);
    }
  }

  private static String text(Map<String, String> statements) {
    StringBuilder text = new StringBuilder();
    new TreeMap<>(statements)
        .forEach(
            (name, sql) ->
                text.append("-- ").append(name).append('\n').append(sql.strip()).append(";\n\n"));
    return text.toString();
  }
}
