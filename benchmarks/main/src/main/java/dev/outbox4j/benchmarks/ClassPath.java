package dev.outbox4j.benchmarks;

import java.io.File;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/**
 * The class paths of contestants: that of their module, or, for the module {@link #BASELINE}, that
 * of another checkout of this project, at {@code -Dbaseline=}. Such a one brings its library and
 * what calls that; what measures is ours.
 */
final class ClassPath {
  /** Stands for the other checkout's main module. */
  static final String BASELINE = "baseline";

  private ClassPath() {}

  static String of(String module) throws IOException {
    return module.equals(BASELINE) ? ofBaseline(baseline()) : joined(moduleAt(home(module)));
  }

  /** Whether the module was built. */
  static boolean exists(String module) {
    Path folder = module.equals(BASELINE) ? mainOf(baseline()) : home(module);
    return Files.exists(dependencies(folder));
  }

  static String ofBaseline(Path checkout) throws IOException {
    // first comes first: what measures is the same for both
    return joined(
        Stream.concat(
                Stream.of(classes(home("spi")).toString()), moduleAt(mainOf(checkout)).stream())
            .toList());
  }

  /** The other checkout. */
  static Path baseline() {
    if (!Settings.given("baseline")) {
      throw new IllegalStateException("-Dbaseline= must name a checkout that was built");
    }
    return Path.of(Settings.text("baseline", "")).toAbsolutePath().normalize();
  }

  private static Path mainOf(Path checkout) {
    return checkout.resolve("benchmarks").resolve("main");
  }

  private static Path home(String module) {
    return Settings.home().resolve(module);
  }

  private static List<String> moduleAt(Path folder) throws IOException {
    Path dependencies = dependencies(folder);
    if (!Files.exists(dependencies)) {
      throw new IllegalStateException(dependencies + " is missing; build " + folder + " first");
    }
    return List.of(classes(folder).toString(), Files.readString(dependencies).trim());
  }

  private static Path classes(Path folder) {
    return folder.resolve("target/classes");
  }

  private static Path dependencies(Path folder) {
    return folder.resolve("target/class-path.txt");
  }

  private static String joined(List<String> parts) {
    return parts.stream().collect(Collectors.joining(File.pathSeparator));
  }
}
