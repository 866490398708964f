package dev.outbox4j.examples.chaos;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.io.StringWriter;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.stream.Stream;
import javax.tools.JavaCompiler;
import javax.tools.StandardJavaFileManager;
import javax.tools.ToolProvider;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/** The gate is run before a release only, so its patches are applied and compiled each time. */
class BrokenEnginesTest {
  private static final Path ROOT = Path.of("").toAbsolutePath().getParent();
  private static final String CHANGED = "+++ b/";
  private static final JavaCompiler COMPILER = ToolProvider.getSystemJavaCompiler();

  /** One for all, since it remembers what is in the jars. */
  private static final StandardJavaFileManager FILES =
      COMPILER.getStandardFileManager(null, null, StandardCharsets.UTF_8);

  @AfterAll
  static void close() throws IOException {
    FILES.close();
  }

  @ParameterizedTest
  @MethodSource("engines")
  void patchFitsTheEngineOfTodayAndCompiles(String engine, @TempDir Path folder)
      throws IOException, InterruptedException {
    Path sources = Files.createDirectories(folder.resolve("sources"));
    Path classes = Files.createDirectories(folder.resolve("classes"));
    Path patch = ROOT.resolve(patch(engine));
    List<Path> changed =
        Files.readAllLines(patch).stream()
            .filter(line -> line.startsWith(CHANGED))
            .map(line -> Path.of(line.substring(CHANGED.length())))
            .toList();
    for (Path file : changed) {
      Path copy = sources.resolve(file);
      Files.createDirectories(copy.getParent());
      Files.copy(ROOT.resolve(file), copy);
    }
    apply(patch, sources);
    for (Path file : changed) {
      assertThat(sources.resolve(file))
          .content()
          .isNotEqualTo(Files.readString(ROOT.resolve(file)));
    }
    compile(changed.stream().map(sources::resolve).toList(), classes);
    try (Stream<Path> compiled = Files.walk(classes)) {
      assertThat(compiled.filter(Files::isRegularFile).map(file -> file.getFileName().toString()))
          .containsAll(changed.stream().map(BrokenEnginesTest::classFile).toList());
    }
  }

  private static String classFile(Path source) {
    return source.getFileName().toString().replace(".java", ".class");
  }

  private static void apply(Path patch, Path sources) throws IOException, InterruptedException {
    Process git =
        new ProcessBuilder("git", "apply", patch.toString())
            .directory(sources.toFile())
            .redirectErrorStream(true)
            .start();
    String said = new String(git.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
    assertThat(git.waitFor()).as(said).isZero();
  }

  /** As the gate does: beside the classes of the engine of today, and without processors. */
  private static void compile(List<Path> sources, Path classes) {
    StringWriter said = new StringWriter();
    List<String> options =
        List.of(
            "-proc:none",
            "-nowarn",
            "-cp",
            System.getProperty("java.class.path"),
            "-d",
            classes.toString());
    boolean compiled =
        COMPILER
            .getTask(said, FILES, null, options, null, FILES.getJavaFileObjectsFromPaths(sources))
            .call();
    assertThat(compiled).as(said.toString()).isTrue();
  }

  @Test
  void eachPatchHasItsRun() throws IOException {
    try (Stream<Path> patches = Files.list(ROOT.resolve(Gate.PATCHES))) {
      assertThat(patches.map(Path::getFileName).map(Path::toString))
          .containsExactlyInAnyOrderElementsOf(engines().map(engine -> engine + ".patch").toList());
    }
  }

  private static Path patch(String engine) {
    return Gate.PATCHES.resolve(engine + ".patch");
  }

  static Stream<String> engines() {
    return Gate.engines().stream();
  }
}
