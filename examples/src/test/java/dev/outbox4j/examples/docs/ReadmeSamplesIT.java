package dev.outbox4j.examples.docs;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import dev.outbox4j.postgres.testing.PostgresExtension;
import dev.outbox4j.postgres.testing.TestDatabase;
import java.io.ByteArrayOutputStream;
import java.io.InputStream;
import java.io.PipedInputStream;
import java.io.PipedOutputStream;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.postgresql.ds.PGSimpleDataSource;

@ExtendWith(PostgresExtension.class)
class ReadmeSamplesIT {

  @Test
  void theExampleRunsAsItStandsAndEndsWithEnter(TestDatabase database) throws Exception {
    PGSimpleDataSource server = database.plain();
    String url =
        "jdbc:postgresql://%s:%d/%s?user=%s&password=%s"
            .formatted(
                server.getServerNames()[0],
                server.getPortNumbers()[0],
                server.getDatabaseName(),
                server.getUser(),
                server.getPassword());
    InputStream keyboard = System.in;
    PrintStream screen = System.out;
    ByteArrayOutputStream shown = new ByteArrayOutputStream();
    try (PipedOutputStream keys = new PipedOutputStream();
        InputStream in = new PipedInputStream(keys)) {
      System.setIn(in);
      System.setOut(new PrintStream(shown, true, StandardCharsets.UTF_8));
      CompletableFuture<Void> program =
          CompletableFuture.runAsync(
              () -> {
                try {
                  FirstMessage.main(new String[] {url});
                } catch (Exception e) {
                  throw new IllegalStateException(e);
                }
              });
      await()
          .until(
              () ->
                  program.isDone() || shown.toString(StandardCharsets.UTF_8).contains("ships o-1"));
      assertThat(program).as("the program").isNotDone();
      await().until(() -> database.count("outbox") == 0);
      keys.write('\n');
      keys.flush();
      program.get(20, TimeUnit.SECONDS);
    } finally {
      System.setIn(keyboard);
      System.setOut(screen);
    }
    assertThat(database.count("outbox_dlq")).isZero();
  }
}
