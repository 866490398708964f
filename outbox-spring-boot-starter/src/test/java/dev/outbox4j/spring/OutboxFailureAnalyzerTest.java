package dev.outbox4j.spring;

import static org.assertj.core.api.Assertions.assertThat;

import dev.outbox4j.OutboxException;
import dev.outbox4j.postgres.OutboxTable;
import dev.outbox4j.postgres.SchemaFault;
import dev.outbox4j.postgres.SchemaReport;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.springframework.boot.diagnostics.FailureAnalysis;

class OutboxFailureAnalyzerTest {

  @Test
  void tellsWhatIsWrongFromWhatToDo() {
    FailureAnalysis analysis =
        analysis("the pool has 2 connections, and 3 subscribers need 6; enlarge the pool");
    assertThat(analysis.getDescription())
        .isEqualTo("the pool has 2 connections, and 3 subscribers need 6.");
    assertThat(analysis.getAction()).isEqualTo("Enlarge the pool.");
  }

  @Test
  void takesTheFaultsOfALongTextApart() {
    FailureAnalysis analysis =
        analysis("it has 3 faults:\none; do this\nt; w; o; do that\nthree; do this");
    assertThat(analysis.getDescription()).isEqualTo("it has 3 faults:\none.\nt; w; o.\nthree.");
    assertThat(analysis.getAction()).isEqualTo("Do this.\nDo that.");
  }

  @Test
  void showsStatementsAsTheyAre() {
    FailureAnalysis analysis =
        analysis(
            new SchemaReport(
                    OutboxTable.named("outbox"),
                    List.of(new SchemaFault("table a", "an index", "none; alas", "create x; y")))
                .toString());
    assertThat(analysis.getDescription())
        .isEqualTo("table a: expected an index, found none; alas.");
    assertThat(analysis.getAction()).isEqualTo("create x; y");
  }

  private static FailureAnalysis analysis(String message) {
    FailureAnalysis analysis =
        new OutboxFailureAnalyzer()
            .analyze(new IllegalStateException(new OutboxException(message)));
    assertThat(analysis).isNotNull();
    return analysis;
  }
}
