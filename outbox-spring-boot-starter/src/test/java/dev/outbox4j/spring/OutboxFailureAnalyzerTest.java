package dev.outbox4j.spring;

import static org.assertj.core.api.Assertions.assertThat;

import dev.outbox4j.OutboxException;
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
  void showsALongTextAsItIs() {
    FailureAnalysis analysis = analysis("the schema has 2 faults:\none; do this\ntwo; do that");
    assertThat(analysis.getDescription())
        .isEqualTo("the schema has 2 faults:\none; do this\ntwo; do that");
    assertThat(analysis.getAction()).isNull();
  }

  private static FailureAnalysis analysis(String message) {
    FailureAnalysis analysis =
        new OutboxFailureAnalyzer()
            .analyze(new IllegalStateException(new OutboxException(message)));
    assertThat(analysis).isNotNull();
    return analysis;
  }
}
