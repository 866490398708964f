package dev.outbox4j.examples.chaos;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class LogTailTest {
  @TempDir Path directory;

  @Test
  void tellsWhatWasLastSaidInWholeLines() throws IOException {
    Path log = Files.createFile(directory.resolve("log"));
    LogTail tail = new LogTail(log, "HEALTH ", "CLOCK ");
    assertThat(tail.lastAfter("HEALTH ")).isEmpty();

    append(log, "10:00 INFO - CLOCK 17\n10:00 INFO - HEALTH down: ä\n10:01 INFO - HEAL");
    assertThat(tail.lastAfter("HEALTH ")).contains("down: ä");

    append(log, "TH up");
    assertThat(tail.lastAfter("HEALTH ")).contains("down: ä");

    append(log, "\n");
    assertThat(tail.lastAfter("HEALTH ")).contains("up");
    assertThat(tail.lastAfter("CLOCK ")).contains("17");
  }

  private static void append(Path log, String text) throws IOException {
    Files.writeString(log, text, StandardOpenOption.APPEND);
  }
}
