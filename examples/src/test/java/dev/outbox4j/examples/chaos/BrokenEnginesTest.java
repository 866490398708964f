package dev.outbox4j.examples.chaos;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/** The gate is run before a release only, so that its patches fit is looked at each time. */
class BrokenEnginesTest {
  private static final Path ROOT = Path.of("").toAbsolutePath().getParent();

  @ParameterizedTest
  @MethodSource("engines")
  void patchFitsTheEngineOfToday(String engine) throws IOException, InterruptedException {
    Process git =
        new ProcessBuilder("git", "apply", "--check", ROOT.resolve(patch(engine)).toString())
            .directory(ROOT.toFile())
            .redirectErrorStream(true)
            .start();
    String said = new String(git.getInputStream().readAllBytes(), StandardCharsets.UTF_8);

    assertThat(git.waitFor()).as(said).isZero();
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
