package dev.outbox4j.examples.poller;

import static org.assertj.core.api.Assertions.assertThat;

import dev.outbox4j.poller.Cursor;
import dev.outbox4j.postgres.testing.PostgresExtension;
import dev.outbox4j.postgres.testing.TestDatabase;
import java.io.ByteArrayOutputStream;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;

@ExtendWith(PostgresExtension.class)
@Tag("once")
class CustomersExampleIT {
  private final TestDatabase database;
  private final ByteArrayOutputStream printed = new ByteArrayOutputStream();

  CustomersExampleIT(TestDatabase database) {
    this.database = database;
  }

  @Test
  void everyCommittedVersionIsAccountedFor() throws Exception {
    assertThat(run(Cursor.serverTime("updated_at"))).as(this::output).isTrue();

    assertThat(output())
        .containsPattern("committed, not dated back: received, or a later one +\\d+ +0 +ok")
        .containsPattern("received: once +\\d+ +0 +ok")
        .containsPattern("versions were committed: .*, [1-9]\\d* are dated back")
        .containsPattern("The longest wait: rows wait since .* for transaction ")
        .containsPattern("A backfill of \\d+ rows has published them")
        .containsPattern("the directory is the table +\\d+ +0 +ok")
        .containsPattern("versions were committed: .*, 0 are dated back")
        .contains("All accounted for");
  }

  @Test
  void aFollowerThatIgnoresOpenTransactionsLosesRowsAndIsToldWhich() throws Exception {
    assertThat(run(Cursor.serverTime("updated_at").assumingThatWritersNeverOverlap()))
        .as(this::output)
        .isFalse();

    assertThat(output())
        .containsPattern(
            "committed, not dated back: received, or a later one +\\d+ +[1-9]\\d* +WRONG")
        .containsPattern("such as \\d+ revision \\d+")
        .contains("SOMETHING IS WRONG");
  }

  private boolean run(Cursor cursor) throws Exception {
    CustomersExample.Options options =
        new CustomersExample.Options(6, 50, Duration.ofSeconds(1), cursor);
    PrintStream out = new PrintStream(printed, true, StandardCharsets.UTF_8);
    return new CustomersExample(database.plain(), options, out).run();
  }

  private String output() {
    return printed.toString(StandardCharsets.UTF_8);
  }
}
