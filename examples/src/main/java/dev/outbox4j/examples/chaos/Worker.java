package dev.outbox4j.examples.chaos;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;

/** A process of the harness, in a JVM of its own. */
final class Worker {
  private final String name;
  private final Process process;
  private final Path log;

  private Worker(String name, Process process, Path log) {
    this.name = name;
    this.process = process;
    this.log = log;
  }

  static Worker start(
      String name, Path logs, Class<?> main, Map<String, String> environment, String... arguments)
      throws IOException {
    List<String> command =
        new ArrayList<>(
            List.of(
                Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                "-Xmx192m",
                "-XX:+UseSerialGC",
                "-cp",
                System.getProperty("java.class.path"),
                main.getName()));
    command.addAll(List.of(arguments));
    Path log = logs.resolve(name + ".log");
    ProcessBuilder builder =
        new ProcessBuilder(command).redirectErrorStream(true).redirectOutput(log.toFile());
    builder.environment().putAll(environment);
    return new Worker(name, builder.start(), log);
  }

  String name() {
    return name;
  }

  boolean alive() {
    return process.isAlive();
  }

  void kill() throws InterruptedException {
    process.destroyForcibly().waitFor();
  }

  void signal(String signal) throws IOException, InterruptedException {
    new ProcessBuilder("kill", "-" + signal, Long.toString(process.pid())).start().waitFor();
  }

  /** Asks the process to stop and returns whether it did, in time and without threads left. */
  boolean stopGracefully(long seconds) throws IOException, InterruptedException {
    process.destroy();
    if (!process.waitFor(seconds, TimeUnit.SECONDS)) {
      return false;
    }
    return Files.readString(log).contains("STOPPED CLEAN");
  }
}
