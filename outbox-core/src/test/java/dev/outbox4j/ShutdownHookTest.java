package dev.outbox4j;

import static org.assertj.core.api.Assertions.assertThat;

import dev.outbox4j.testing.InMemoryStore;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.time.Clock;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;

/** The shutdown hook, in a process of its own, since it needs one that ends. */
class ShutdownHookTest {

  @Test
  void processThatEndsDrainsFirst() throws Exception {
    assertThat(linesOf("hook")).containsExactly("begun", "handled", "stopped", "rows left: 0");
  }

  @Test
  void processThatEndsWithoutTheHookLeavesTheRow() throws Exception {
    assertThat(linesOf("none")).containsExactly("begun");
  }

  @Test
  void stopTakesTheHookBackSoThatALaterEndFindsNothingToDo() throws Exception {
    assertThat(linesOf("hook", "stop"))
        .containsExactly("begun", "handled", "stopped", "rows left: 0", "stop returned");
  }

  private static List<String> linesOf(String... arguments)
      throws IOException, InterruptedException {
    List<String> command =
        new java.util.ArrayList<>(
            List.of(
                Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                "-cp",
                System.getProperty("java.class.path"),
                Service.class.getName()));
    command.addAll(List.of(arguments));
    Process process =
        new ProcessBuilder(command).redirectError(ProcessBuilder.Redirect.DISCARD).start();
    try {
      List<String> lines =
          new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8)
              .lines()
              .filter(line -> line.startsWith("> "))
              .map(line -> line.substring(2))
              .toList();
      assertThat(process.waitFor(30, TimeUnit.SECONDS)).isTrue();
      return lines;
    } finally {
      process.destroyForcibly();
    }
  }

  /** A service whose handler is at work when its process is told to end. */
  static final class Service {
    private Service() {}

    public static void main(String[] arguments) throws InterruptedException {
      List<String> options = List.of(arguments);
      InMemoryStore store = new InMemoryStore(Clock.systemUTC());
      CountDownLatch begun = new CountDownLatch(1);
      CountDownLatch ending = new CountDownLatch(1);
      OutboxSubscriber.Builder builder =
          OutboxSubscriber.builder("orders")
              .deleteTerminalFailures()
              .store(store)
              .events(
                  new dev.outbox4j.SubscriberEvents() {
                    @Override
                    public void stopped(String name) {
                      say("stopped");
                      say("rows left: " + store.rows().size());
                    }
                  })
              .on(
                  "t",
                  (payload, delivery) -> {
                    say("begun");
                    begun.countDown();
                    ending.await();
                    say("handled");
                  });
      if (options.contains("hook")) {
        builder.stopOnShutdown();
      }
      OutboxSubscriber subscriber = builder.build();
      subscriber.start();
      store.publish(OutboxMessage.to("orders").type("t").body("x").build());
      begun.await();
      if (options.contains("stop")) {
        ending.countDown();
        subscriber.stop();
        say("stop returned");
      } else if (options.contains("hook")) {
        // the handler goes on once the drain has begun, and not before
        Thread releaser =
            new Thread(
                () -> {
                  while (subscriber.health().state() != SubscriberState.DRAINING) {
                    Thread.onSpinWait();
                  }
                  ending.countDown();
                });
        releaser.setDaemon(true);
        releaser.start();
      }
      System.exit(0);
    }

    private static void say(String line) {
      System.out.println("> " + line);
      System.out.flush();
    }
  }
}
