package dev.outbox4j.examples.chaos;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.sql.SQLException;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.function.BiFunction;
import org.jspecify.annotations.Nullable;

/** The processes of a proof: each has a slot, and one that has ended is replaced there. */
final class ProofProcesses {
  private static final Duration LONGEST_START = Duration.ofSeconds(60);
  private static final Duration LOOK_AGAIN = Duration.ofMillis(50);

  private final Path directory;
  private final Class<?> main;
  private final BiFunction<String, Integer, List<String>> arguments;
  private final Report report;
  private final @Nullable Worker[] slots;
  private int started;

  /**
   * Starts none yet.
   *
   * @param count how many slots there are
   * @param directory where their logs go
   * @param main their main class
   * @param arguments those of a process, by its name and its slot
   * @param report told of those that do not start
   */
  ProofProcesses(
      int count,
      Path directory,
      Class<?> main,
      BiFunction<String, Integer, List<String>> arguments,
      Report report) {
    this.slots = new Worker[count];
    this.directory = directory;
    this.main = main;
    this.arguments = arguments;
    this.report = report;
  }

  /** What a proof does. */
  interface Proof {
    /** Returns whether nothing was found. */
    boolean run(Path directory, Server server, long seed)
        throws IOException, InterruptedException, SQLException;
  }

  /** Runs a proof on a server of its own, and exits. */
  static void prove(String what, Proof proof)
      throws IOException, InterruptedException, SQLException {
    long seed = Long.parseLong(Options.property("seed", Long.toString(System.nanoTime())));
    Path directory = Files.createTempDirectory("outbox-" + what);
    Report.say("%s proof: seed %d, logs in %s".formatted(what, seed, directory));
    boolean clean;
    try (Server server = new Server(directory)) {
      clean = proof.run(directory, server, seed);
    }
    if (clean) {
      Chaos.delete(directory);
    }
    System.exit(clean ? 0 : 1);
  }

  int size() {
    return slots.length;
  }

  /** How many were started in all. */
  int started() {
    return started;
  }

  Worker get(int slot) {
    Worker process = slots[slot];
    if (process == null) {
      throw new IllegalStateException("no process was started in slot " + slot);
    }
    return process;
  }

  /** Starts one in each slot, and waits until they say that they are up. */
  void startAll() throws IOException {
    for (int slot = 0; slot < slots.length; slot++) {
      start(slot);
    }
    long until = System.nanoTime() + LONGEST_START.toNanos();
    for (int slot = 0; slot < slots.length; slot++) {
      while (!get(slot).health().equals(Optional.of("up"))) {
        if (System.nanoTime() > until) {
          report.breach(
              get(slot).name() + " says " + get(slot).health().orElse("nothing") + " and not up");
          return;
        }
        Watch.pause(LOOK_AGAIN);
      }
    }
  }

  /** Starts one whose name is p, the slot, and how many were started. */
  void start(int slot) throws IOException {
    String name = "p" + slot + "." + ++started;
    slots[slot] =
        Worker.start(
            name, directory, main, Map.of(), arguments.apply(name, slot).toArray(String[]::new));
  }

  void killAll() throws InterruptedException {
    for (Worker process : slots) {
      if (process != null) {
        process.kill();
      }
    }
  }
}
