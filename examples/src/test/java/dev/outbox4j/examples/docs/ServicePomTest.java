package dev.outbox4j.examples.docs;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Test;

/** Holds the pom of a service in the guide to the versions that the library is built with. */
class ServicePomTest {
  private static final Pattern BLOCK =
      Pattern.compile("<!-- pom: ([\\w-]+) -->\\n```xml\\n(.*?)```", Pattern.DOTALL);

  private static final Pattern XML = Pattern.compile("```xml\\n(.*?)```", Pattern.DOTALL);

  private static Pom shown(String name) throws IOException {
    return shown("getting-started.md", name);
  }

  private static Pom shown(String page, String name) throws IOException {
    Matcher block = BLOCK.matcher(Files.readString(Pom.ROOT.resolve("docs").resolve(page)));
    while (block.find()) {
      if (block.group(1).equals(name)) {
        return parsed(block.group(2));
      }
    }
    throw new AssertionError("docs/" + page + " has no block <!-- pom: " + name + " -->");
  }

  private static Pom parsed(String text) throws IOException {
    return Pom.parse(
        text.startsWith("<project") ? text : "<x><dependencies>" + text + "</dependencies></x>");
  }

  @Test
  void versionsAreThoseOfTheRootPom() throws IOException {
    List<Pom.Dependency> managed = Pom.root().managed();
    List<Pom.Dependency> shown = new ArrayList<>(shown("service").dependencies());
    shown.addAll(shown("jackson2").dependencies());
    for (Pom.Dependency dependency : shown) {
      assertThat(versionIn(managed, dependency))
          .as("the version of %s in the root pom", dependency.name())
          .contains(dependency.version());
    }
  }

  @Test
  void everyDependencyThatADocumentShowsIsOneOfTheRootPom() throws IOException {
    List<Path> documents = new ArrayList<>();
    documents.add(Pom.ROOT.resolve("README.md"));
    documents.addAll(DocumentedSamples.filesIn(Pom.ROOT.resolve("docs"), ".md"));
    List<Pom.Dependency> managed = Pom.root().managed();
    int blocks = 0;
    for (Path document : documents) {
      Matcher block = XML.matcher(Files.readString(document));
      while (block.find()) {
        blocks++;
        for (Pom.Dependency dependency : parsed(block.group(1)).dependencies()) {
          if (!dependency.version().isEmpty()) {
            assertThat(versionIn(managed, dependency))
                .as("%s: the version of %s in the root pom", document, dependency.name())
                .contains(dependency.version());
          }
        }
      }
    }
    assertThat(blocks).isGreaterThanOrEqualTo(6);
  }

  @Test
  void nothingThatTheGuideUsesIsLeftOut() throws IOException {
    assertThat(shown("service").dependencies().stream().map(Pom.Dependency::name))
        .containsExactly(
            "dev.outbox4j:outbox-postgres",
            "dev.outbox4j:outbox-dlq",
            "dev.outbox4j:outbox-migrations",
            "org.postgresql:postgresql",
            "com.zaxxer:HikariCP",
            "tools.jackson.core:jackson-databind",
            "io.micrometer:micrometer-core",
            "ch.qos.logback:logback-classic");
    assertThat(shown("jackson2").dependencies().stream().map(Pom.Dependency::name))
        .containsExactly(
            "com.fasterxml.jackson.core:jackson-databind",
            "com.fasterxml.jackson.datatype:jackson-datatype-jsr310");
  }

  @Test
  void itCompilesForTheJavaThatTheLibraryNeeds() throws IOException {
    assertThat(shown("service").property("maven.compiler.release"))
        .isEqualTo(Pom.root().property("maven.compiler.release"));
  }

  @Test
  void theServiceOnSpringBootIsAPartOfAnExampleThatIsBuilt() throws IOException {
    Pom shown = shown("spring-boot.md", "spring-boot");
    Pom example = Pom.read(Pom.ROOT.resolve("examples/spring/boot-4/pom.xml"));

    assertThat(shown.managed()).isNotEmpty().isEqualTo(example.managed());
    assertThat(shown.dependencies().stream().map(ServicePomTest::nameAndScope))
        .isNotEmpty()
        .isSubsetOf(example.dependencies().stream().map(ServicePomTest::nameAndScope).toList());
    List<Pom.Dependency> ours = Pom.root().managed();
    for (Pom.Dependency dependency : shown.dependencies()) {
      if (!dependency.version().isEmpty()) {
        assertThat(versionIn(ours, dependency))
            .as("the version of %s in the root pom", dependency.name())
            .contains(dependency.version());
      }
    }
    Pom parent = Pom.read(Pom.ROOT.resolve("examples/spring/pom.xml"));
    for (String name : List.of("maven.compiler.release", "maven.compiler.parameters")) {
      assertThat(shown.property(name)).as(name).isEqualTo(parent.property(name));
    }
  }

  private static String nameAndScope(Pom.Dependency dependency) {
    return dependency.name() + " " + dependency.scope();
  }

  /** By its name, or by a bill of materials of its group. */
  private static Optional<String> versionIn(
      List<Pom.Dependency> managed, Pom.Dependency dependency) {
    return managed.stream()
        .filter(
            known ->
                known.name().equals(dependency.name())
                    || (known.scope().equals("import")
                        && (dependency.group() + ".").startsWith(known.group() + ".")))
        .map(Pom.Dependency::version)
        .findFirst();
  }
}
