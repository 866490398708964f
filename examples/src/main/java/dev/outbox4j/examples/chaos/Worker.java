package dev.outbox4j.examples.chaos;

import java.io.IOException;
import java.io.OutputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.TimeUnit;

/** A process of the harness, in a JVM of its own. */
final class Worker {
  private static final int SIGKILL = 9;

  private final String name;
  private final Process process;
  private final LogTail log;
  private final long startedAt = System.currentTimeMillis();

  private Worker(String name, Process process, Path log) {
    this.name = name;
    this.process = process;
    this.log =
        new LogTail(log, Subscriber.HEALTH, Subscriber.CLOCK, Subscriber.TALLY, Subscriber.STOPPED);
  }

  static Worker start(
      String name, Path logs, Class<?> main, Map<String, String> environment, String... arguments)
      throws IOException {
    List<String> command =
        new ArrayList<>(
            List.of(
                Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                "-Xmx128m",
                "-XX:+UseSerialGC",
                "-XX:TieredStopAtLevel=1", // many are started, none runs for long
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

  /** Tells whether the process was ended by the signal that cannot be caught. */
  boolean killed() {
    return !process.isAlive() && process.exitValue() == 128 + SIGKILL;
  }

  void signal(String signal) throws IOException, InterruptedException {
    Signals.send(signal, process.pid(), name);
  }

  void order(String order) throws IOException {
    OutputStream orders = process.getOutputStream();
    orders.write((order + "\n").getBytes(StandardCharsets.UTF_8));
    orders.flush();
  }

  /**
   * Asks the process to stop, and kills it if it does not in time. Returns what it had left at its
   * end, if it came to say so.
   */
  Optional<Leftovers> stop(long seconds) throws IOException, InterruptedException {
    process.toHandle().destroy(); // of the process itself, this would close its input too
    if (!process.waitFor(seconds, TimeUnit.SECONDS)) {
      kill();
      return Optional.empty();
    }
    return log.lastAfter(Subscriber.STOPPED).map(Leftovers::parse);
  }

  /** What the subscriber last said of its health, if anything. */
  Optional<String> health() throws IOException {
    return log.lastAfter(Subscriber.HEALTH);
  }

  /** What the subscriber last counted; nothing before it first said so. */
  Map<Tally.Count, Long> tally() throws IOException {
    return log.lastAfter(Subscriber.TALLY).map(Tally::parse).orElse(Map.of());
  }

  /** By how many seconds the process's clock was off when it started, give or take its start. */
  Optional<Long> clockOffset() throws IOException {
    return log.lastAfter(Subscriber.CLOCK)
        .map(millis -> Math.round((Long.parseLong(millis) - startedAt) / 1e3));
  }
}
