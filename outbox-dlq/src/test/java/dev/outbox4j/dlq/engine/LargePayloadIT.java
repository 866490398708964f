package dev.outbox4j.dlq.engine;

import static org.assertj.core.api.Assertions.assertThat;

import com.zaxxer.hikari.HikariConfig;
import com.zaxxer.hikari.HikariDataSource;
import dev.outbox4j.OutboxSubscriber;
import dev.outbox4j.postgres.OutboxTable;
import dev.outbox4j.postgres.PostgresOutbox;
import dev.outbox4j.postgres.testing.PostgresExtension;
import dev.outbox4j.postgres.testing.TestDatabase;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.postgresql.ds.PGSimpleDataSource;

/** A backlog of large payloads, default settings, and a process with a small heap. */
@ExtendWith(PostgresExtension.class)
class LargePayloadIT {
  private static final int MESSAGES = 1_500;
  private static final int BYTES = 200_000;

  private final TestDatabase database;

  LargePayloadIT(TestDatabase database) {
    this.database = database;
  }

  @ParameterizedTest
  @ValueSource(ints = {256, 128})
  void aBacklogIsDrainedWithoutAnOutOfMemoryErrorOrAForgottenLease(int heapMegabytes)
      throws Exception {
    database.update("truncate outbox");
    database.update(
        "insert into outbox (queue, type, payload) select 'large', 't', decode(repeat('00', "
            + BYTES
            + "), 'hex') from generate_series(1, "
            + MESSAGES
            + ")");

    List<String> lines = linesOfAProcess(heapMegabytes);

    assertThat(lines).containsExactly("handled " + MESSAGES, "stopped");
    assertThat(database.one(Long.class, "select count(*) from outbox")).isZero();
  }

  private List<String> linesOfAProcess(int heapMegabytes) throws IOException, InterruptedException {
    PGSimpleDataSource source = database.plain();
    Process process =
        new ProcessBuilder(
                Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                "-Xmx" + heapMegabytes + "m",
                "-XX:+ExitOnOutOfMemoryError",
                "-cp",
                System.getProperty("java.class.path"),
                Service.class.getName(),
                source.getURL(),
                String.valueOf(source.getUser()),
                String.valueOf(source.getPassword()))
            .redirectError(ProcessBuilder.Redirect.DISCARD)
            .start();
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

  /** Handles what there is, and ends. */
  static final class Service {
    private Service() {}

    public static void main(String[] arguments) throws InterruptedException {
      HikariConfig config = new HikariConfig();
      config.setJdbcUrl(arguments[0]);
      config.setUsername(arguments[1]);
      config.setPassword(arguments[2]);
      config.setMaximumPoolSize(2);
      try (HikariDataSource pool = new HikariDataSource(config)) {
        AtomicInteger handled = new AtomicInteger();
        CountDownLatch done = new CountDownLatch(MESSAGES);
        OutboxSubscriber subscriber =
            OutboxSubscriber.builder("large")
                .deleteTerminalFailures()
                .store(PostgresOutbox.on(pool, OutboxTable.named("outbox")).store())
                .maxDeliveries(50)
                .on(
                    "t",
                    (payload, delivery) -> {
                      handled.incrementAndGet();
                      done.countDown();
                    })
                .build();
        subscriber.start();
        boolean all = done.await(60, TimeUnit.SECONDS);
        say("handled " + (all ? handled.get() : -handled.get()));
        subscriber.stop();
        say("stopped");
      }
      System.exit(0);
    }

    private static void say(String line) {
      System.out.println("> " + line);
      System.out.flush();
    }
  }
}
