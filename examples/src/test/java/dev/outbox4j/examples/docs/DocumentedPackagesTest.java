package dev.outbox4j.examples.docs;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;

/** Holds the table of packages in the guide to the code, and to what the samples import. */
class DocumentedPackagesTest {
  private static final Pattern ROW = Pattern.compile("\\| `([a-z0-9.]+)` \\| (`.+`) \\|");
  private static final Pattern IMPORT =
      Pattern.compile("import (dev\\.outbox4j\\.[a-z0-9.]*)\\.([A-Z]\\w*)(\\.[A-Z]\\w*)*;");

  /**
   * Whose classes are no samples' business: the examples' own, and what this project tests with.
   */
  private static final Pattern NOT_SHOWN = Pattern.compile(".*\\.(examples|testing|internal)\\b.*");

  @Test
  void namesPublicClassesOfThatPackage() throws IOException {
    Set<String> documented = documented();

    assertThat(documented).hasSizeGreaterThan(40);
    assertThat(documented).allSatisfy(name -> assertThat(source(name)).contains("public "));
  }

  @Test
  void namesWhatTheSamplesImport() throws IOException {
    Set<String> imported = new TreeSet<>();
    for (String folder : List.of("examples/src", "examples/spring/boot-4/src")) {
      for (Path file : DocumentedSamples.filesIn(Pom.ROOT.resolve(folder), ".java")) {
        String text = Files.readString(file);
        if (text.contains("// tag" + "::")) {
          Matcher found = IMPORT.matcher(text);
          while (found.find()) {
            if (!NOT_SHOWN.matcher(found.group(1)).matches()) {
              imported.add(found.group(1) + "." + found.group(2));
            }
          }
        }
      }
    }

    assertThat(imported).hasSizeGreaterThan(20);
    assertThat(documented()).containsAll(imported);
  }

  private static Set<String> documented() throws IOException {
    String text = Files.readString(Pom.ROOT.resolve("docs").resolve("getting-started.md"));
    Matcher row = ROW.matcher(text.substring(text.indexOf("<!-- packages -->")));
    Set<String> names = new TreeSet<>();
    while (row.find()) {
      for (String simple : row.group(2).replace("`", "").split(", ", -1)) {
        names.add(row.group(1) + "." + simple);
      }
    }
    return names;
  }

  private static String source(String name) throws IOException {
    List<Path> found = new ArrayList<>();
    try (Stream<Path> modules = Files.list(Pom.ROOT)) {
      modules
          .map(module -> module.resolve("src/main/java").resolve(name.replace('.', '/') + ".java"))
          .filter(Files::exists)
          .forEach(found::add);
    }
    assertThat(found).as(name).hasSize(1);
    String simple = name.substring(name.lastIndexOf('.') + 1);
    return Files.readAllLines(found.get(0)).stream()
        .filter(line -> line.matches("public .*\\b" + simple + "\\b.*"))
        .findFirst()
        .orElse("no public type in " + found);
  }
}
