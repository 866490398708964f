package dev.outbox4j.examples.docs;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeFalse;

import java.io.IOException;
import java.nio.file.Path;
import java.util.List;
import java.util.jar.JarFile;
import java.util.zip.ZipEntry;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/** With each published jar go its sources and its javadoc, so that an IDE can show them. */
class PublishedJarsIT {
  static List<Path> modules() throws IOException {
    return Pom.published();
  }

  @ParameterizedTest
  @MethodSource("modules")
  void theSourcesJarHasEachSource(Path module) throws IOException {
    Path sources = module.resolve("src").resolve("main").resolve("java");
    List<String> files =
        DocumentedSamples.filesIn(sources, ".java").stream()
            .map(file -> sources.relativize(file).toString().replace('\\', '/'))
            .toList();
    if (!files.isEmpty()) {
      assertThat(entries(module, "sources")).containsAll(files);
    }
  }

  @ParameterizedTest
  @MethodSource("modules")
  void theJavadocJarHasAPageForEachPublicPackage(Path module) throws IOException {
    assumeFalse(Boolean.getBoolean("maven.javadoc.skip"), "this build makes no javadoc");
    Path sources = module.resolve("src").resolve("main").resolve("java");
    List<String> pages =
        DocumentedSamples.filesIn(sources, "package-info.java").stream()
            .map(file -> sources.relativize(file.getParent()).toString().replace('\\', '/'))
            .filter(folder -> !(folder + "/").contains("/internal/"))
            .map(folder -> folder + "/package-summary.html")
            .toList();
    if (!pages.isEmpty()) {
      List<String> entries = entries(module, "javadoc"); // in a folder of the module's name
      assertThat(pages).allMatch(page -> entries.stream().anyMatch(e -> e.endsWith("/" + page)));
    }
  }

  private static List<String> entries(Path module, String kind) throws IOException {
    Path jar =
        module
            .resolve("target")
            .resolve(
                Pom.read(module.resolve("pom.xml")).artifact()
                    + "-"
                    + Pom.root().version()
                    + "-"
                    + kind
                    + ".jar");
    assertThat(jar)
        .as("%s is missing: the build makes it in the phase package; run ./mvnw verify", jar)
        .exists();
    try (JarFile file = new JarFile(jar.toFile())) {
      return file.stream().map(ZipEntry::getName).toList();
    }
  }
}
