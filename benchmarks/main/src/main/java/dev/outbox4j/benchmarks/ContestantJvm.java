package dev.outbox4j.benchmarks;

import dev.outbox4j.benchmarks.spi.ContestantProcess;
import dev.outbox4j.benchmarks.spi.Numbers;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;

/** A contestant's process, on the class path of its module. */
final class ContestantJvm implements AutoCloseable {

  /** The setting that makes {@link #outOfMemoryErrors} known. */
  static final String COUNT_OUT_OF_MEMORY = "countOutOfMemory";

  private final Process process;
  private final PrintStream tasks;
  private final BufferedReader answers;
  private final Path log;
  private final Path exceptions;
  private final long patienceMinutes;
  private String contract = "";

  ContestantJvm(Entrant entrant, Server server, String database) throws IOException {
    Path logs = Settings.home().resolve("target/logs");
    Files.createDirectories(logs);
    log = logs.resolve(entrant.label() + ".log");
    exceptions = logs.resolve(entrant.label() + ".exceptions.log");
    patienceMinutes =
        Roster.mayBeStopped(entrant) ? 10 : 60 + Settings.number("seconds", 3600) / 60L;
    List<String> command = new ArrayList<>();
    command.add(Path.of(System.getProperty("java.home"), "bin", "java").toString());
    command.add("-Xmx" + entrant.options().getOrDefault("heap", Settings.text("heap", "512m")));
    if (entrant.options().containsKey(COUNT_OUT_OF_MEMORY)) {
      Files.deleteIfExists(exceptions);
      command.add(OutOfMemory.option(exceptions));
    }
    command.addAll(Settings.given("jvm") ? Settings.list("jvm", "") : List.of());
    command.add("-cp");
    command.add(ClassPath.of(entrant.module()));
    command.add(ContestantProcess.class.getName());
    command.add(entrant.contestant());
    command.add(server.url(database));
    command.add(server.user());
    command.add(server.password());
    entrant.options().forEach((name, value) -> command.add(name + "=" + value));
    process =
        new ProcessBuilder(command)
            .redirectError(ProcessBuilder.Redirect.appendTo(log.toFile()))
            .start();
    tasks = new PrintStream(process.getOutputStream(), true, StandardCharsets.UTF_8);
    answers =
        new BufferedReader(new InputStreamReader(process.getInputStream(), StandardCharsets.UTF_8));
    receive("start");
  }

  /** What the contestant promises. */
  String contract() {
    return contract;
  }

  /** How many it has met so far, whoever caught them. */
  long outOfMemoryErrors() throws IOException {
    return OutOfMemory.count(exceptions);
  }

  /** Tells the process what to do, without waiting. */
  void send(String task) {
    tasks.println(task);
  }

  /** Waits for the answer to what was sent; a process that hangs is ended. */
  Numbers receive(String task) throws IOException {
    CompletableFuture<Void> end =
        CompletableFuture.runAsync(
            process::destroyForcibly,
            CompletableFuture.delayedExecutor(patienceMinutes, TimeUnit.MINUTES));
    try {
      return answer(task);
    } finally {
      end.cancel(false);
    }
  }

  private Numbers answer(String task) throws IOException {
    String line = answers.readLine();
    while (line != null) {
      if (line.startsWith(ContestantProcess.ANSWER)) {
        return Numbers.parse(line.substring(ContestantProcess.ANSWER.length()));
      }
      if (line.startsWith(ContestantProcess.FAILED)) {
        throw new IOException(
            task + ": " + line.substring(ContestantProcess.FAILED.length()) + "; see " + log);
      }
      if (line.startsWith(ContestantProcess.CONTRACT)) {
        contract = line.substring(ContestantProcess.CONTRACT.length());
      }
      line = answers.readLine();
    }
    throw new IOException(task + ": the process ended; see " + log);
  }

  Numbers perform(String task) throws IOException {
    send(task);
    return receive(task);
  }

  @Override
  public void close() {
    tasks.println("quit");
    try {
      if (!process.waitFor(10, TimeUnit.SECONDS)) {
        process.destroyForcibly();
      }
    } catch (InterruptedException e) {
      process.destroyForcibly();
      Thread.currentThread().interrupt();
    }
  }
}
