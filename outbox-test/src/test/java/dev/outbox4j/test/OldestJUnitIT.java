package dev.outbox4j.test;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.File;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Runs a test class with the oldest JUnit that the extension works with, in a JVM of its own. */
@Tag("once")
class OldestJUnitIT {
  private static final Path MODULE = Path.of(System.getProperty("basedir", "")).toAbsolutePath();

  @TempDir Path folder;

  @Test
  void runsTheExtension() throws Exception {
    List<String> oldest = jars(MODULE.resolve("target/oldest-junit"));
    assertThat(oldest).hasSize(5).allMatch(jar -> jar.contains("-5.11.") || jar.contains("-1.11."));
    String classPath =
        Stream.concat(
                oldest.stream(),
                Stream.of(System.getProperty("java.class.path").split(File.pathSeparator, -1))
                    .filter(entry -> !isJUnit(Path.of(entry).getFileName().toString())))
            .collect(Collectors.joining(File.pathSeparator));
    Path log = folder.resolve("log");

    Process process =
        new ProcessBuilder(
                Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                "-cp",
                classPath,
                OldestJUnitMain.class.getName())
            .redirectErrorStream(true)
            .redirectOutput(log.toFile())
            .start();
    try {
      assertThat(process.waitFor(120, TimeUnit.SECONDS)).isTrue();
    } finally {
      process.destroyForcibly();
    }

    assertThat(Files.readString(log)).contains("JUnit 5.11.", "2 succeeded, 0 failed");
    assertThat(process.exitValue()).isZero();
  }

  private static boolean isJUnit(String file) {
    return file.startsWith("junit-jupiter-") || file.startsWith("junit-platform-");
  }

  private static List<String> jars(Path directory) throws IOException {
    try (Stream<Path> files = Files.list(directory)) {
      return files.map(Path::toString).filter(file -> file.endsWith(".jar")).sorted().toList();
    }
  }
}
