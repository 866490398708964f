package dev.outbox4j.examples.chaos;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;

/** A data directory of PostgreSQL's, and its server while that runs. */
final class Instance {
  private final Path binaries;
  private final Path data;
  private final int port;

  /**
   * @param binaries the directory of {@code pg_ctl}
   */
  Instance(Path binaries, Path data, int port) {
    this.binaries = binaries;
    this.data = data;
    this.port = port;
  }

  /** The same data behind another port, for a server that is not running. */
  Instance at(int otherPort) {
    return new Instance(binaries, data, otherPort);
  }

  /** Another instance by the same binaries. */
  Instance beside(Path otherData, int otherPort) {
    return new Instance(binaries, otherData, otherPort);
  }

  int port() {
    return port;
  }

  Path data() {
    return data;
  }

  void start() throws IOException, InterruptedException {
    start(Map.of());
  }

  void start(Map<String, String> environment) throws IOException, InterruptedException {
    String options = "-p " + port;
    run(environment, "start", "-o", options, "-l", data.resolveSibling("server.log").toString());
  }

  void stop(String mode) throws IOException, InterruptedException {
    run(Map.of(), "stop", "-m", mode);
  }

  void promote() throws IOException, InterruptedException {
    run(Map.of(), "promote");
  }

  boolean running() {
    return Files.exists(data.resolve("postmaster.pid"));
  }

  /** Removes the data of a server that is not running. */
  void delete() throws IOException {
    try (Stream<Path> files = Files.walk(data)) {
      for (Path file : files.sorted(Comparator.reverseOrder()).toList()) {
        Files.delete(file);
      }
    }
  }

  private void run(Map<String, String> environment, String... arguments)
      throws IOException, InterruptedException {
    List<String> command = new ArrayList<>();
    if ("root".equals(System.getProperty("user.name"))) {
      command.addAll(List.of("unshare", "-U")); // PostgreSQL refuses to run as root
    }
    command.add(binaries.resolve("pg_ctl").toString());
    command.addAll(List.of("-w", "-t", "60", "-D", data.toString()));
    command.addAll(List.of(arguments));
    Path log = data.resolveSibling("pg_ctl.log");
    ProcessBuilder builder =
        new ProcessBuilder(command).redirectErrorStream(true).redirectOutput(log.toFile());
    builder.environment().putAll(environment);
    if (builder.start().waitFor() != 0) {
      throw new IOException("pg_ctl " + arguments[0] + " failed: " + Files.readString(log));
    }
  }
}
