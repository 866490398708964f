package dev.outbox4j.examples.chaos;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.function.Consumer;

/** What the harness tells a process, line by line through its standard input. */
final class Orders implements Runnable {
  static final String DEAD_POOL = "dead-pool";
  static final String SLOW_HANDLERS = "slow-handlers";

  /** No transaction of a publisher stays open. */
  static final String BRIEF_TRANSACTIONS = "brief-transactions";

  static final String AS_USUAL = "as-usual";

  /** How long each handler takes while they are slow. */
  static final Duration SLOWNESS = Duration.ofSeconds(4);

  private final Consumer<String> obey;

  private Orders(Consumer<String> obey) {
    this.obey = obey;
  }

  /** Obeys until the harness is gone, and then ends the process too. */
  static void follow(Consumer<String> obey) {
    Thread thread = new Thread(new Orders(obey), "chaos-orders");
    thread.setDaemon(true);
    thread.start();
  }

  @Override
  public void run() {
    try (BufferedReader in =
        new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8))) {
      for (String line = in.readLine(); line != null; line = in.readLine()) {
        obey.accept(line);
      }
    } catch (IOException harnessIsGone) {
      // the same as the end of the input
    }
    Runtime.getRuntime().halt(1);
  }
}
