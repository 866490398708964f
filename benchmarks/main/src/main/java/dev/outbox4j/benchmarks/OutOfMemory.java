package dev.outbox4j.benchmarks;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.stream.Stream;

/**
 * Counts the OutOfMemoryErrors of a process, whoever catches them, in what its JVM logs of
 * exceptions.
 */
final class OutOfMemory {
  private OutOfMemory() {}

  /** Makes the JVM log its exceptions to a file. */
  static String option(Path file) {
    return "-Xlog:exceptions=info:file=" + file + ":none:filecount=0";
  }

  static long count(Path file) throws IOException {
    try (Stream<String> lines = Files.lines(file)) {
      return count(lines);
    }
  }

  /**
   * The JVM tells of an error where it throws it, with an address in parentheses, and then again in
   * each method that it passes.
   */
  static long count(Stream<String> lines) {
    return lines
        .filter(line -> line.startsWith("Exception <a 'java/lang/OutOfMemoryError'"))
        .filter(line -> line.stripTrailing().endsWith(")"))
        .count();
  }
}
