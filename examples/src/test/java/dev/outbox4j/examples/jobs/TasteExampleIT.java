package dev.outbox4j.examples.jobs;

import static org.assertj.core.api.Assertions.assertThat;

import dev.outbox4j.postgres.testing.PostgresExtension;
import dev.outbox4j.postgres.testing.TestDatabase;
import java.io.ByteArrayOutputStream;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;

@ExtendWith(PostgresExtension.class)
@Tag("large")
class TasteExampleIT {
  private final TestDatabase database;
  private final ByteArrayOutputStream printed = new ByteArrayOutputStream();

  TasteExampleIT(TestDatabase database) {
    this.database = database;
  }

  @Test
  void everyRequestIsAccountedFor() throws Exception {
    PrintStream out = new PrintStream(printed, true, StandardCharsets.UTF_8);
    boolean right = new TasteExample(database.plain(), "public", 10, out).run();

    assertThat(right).as(this::output).isTrue();
    assertThat(output())
        .contains("100 requests of one user at once have enqueued 1 job")
        .contains("The analysis service is down: 0 dead letters are replayed, 10 discarded, 20")
        .contains("ALERT DEAD_LETTER_RATIO")
        .contains("It works again: 10 dead letters are replayed, 0 discarded, 10 kept")
        .contains("A job has ended 5 processes, and its user was asked for 5 times")
        .contains("With a repaired codec: 10 dead letters are replayed, 0 discarded, 1 kept")
        .contains("ann has discarded 1")
        .contains("At the end: 0 dead letters are replayed, 0 discarded, 0 kept")
        .containsPattern("a job: enqueued once +[1-9]\\d* +0 +ok")
        .containsPattern("rolled back: nothing is there +10 +0 +ok")
        .contains("All accounted for");
  }

  private String output() {
    return printed.toString(StandardCharsets.UTF_8);
  }
}
