package dev.outbox4j.postgres.internal.publish;

import static org.assertj.core.api.Assertions.assertThat;

import dev.outbox4j.postgres.NotifyMode;
import dev.outbox4j.postgres.OutboxTable;
import dev.outbox4j.postgres.testing.GoldenFile;
import java.util.Map;
import java.util.TreeMap;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

class RenderedStatementsTest {
  private static final OutboxTable TABLE = OutboxTable.named("out box").inSchema("Sales");

  @Test
  void areThoseOfTheFile() {
    Map<String, String> statements = new TreeMap<>();
    for (NotifyMode mode : NotifyMode.values()) {
      PublishSql sql = PublishSql.forR2dbc(TABLE, mode);
      statements.put("publish one message, " + mode, sql.single());
      statements.put("publish several messages, " + mode, sql.plain());
      statements.put("publish with timer ids, " + mode, sql.timers());
      statements.put("publish in the place of timers, " + mode, sql.replacing());
      statements.put("publish with dedup keys, " + mode, sql.dedup());
      statements.put("cancel a timer", sql.cancelTimer());
    }
    GoldenFile.assertSame(RenderedStatementsTest.class, "statements.sql", statements);
  }

  @ParameterizedTest
  @EnumSource
  void areTheSameForJdbcButForTheMarkers(NotifyMode mode) {
    PublishSql numbered = PublishSql.forR2dbc(TABLE, mode);
    PublishSql unnumbered = PublishSql.forJdbc(TABLE, mode);
    assertThat(unnumbered.single()).isEqualTo(Markers.forJdbc(numbered.single()));
    assertThat(unnumbered.plain()).isEqualTo(Markers.forJdbc(numbered.plain()));
    assertThat(unnumbered.timers()).isEqualTo(Markers.forJdbc(numbered.timers()));
    assertThat(unnumbered.replacing()).isEqualTo(Markers.forJdbc(numbered.replacing()));
    assertThat(unnumbered.dedup()).isEqualTo(Markers.forJdbc(numbered.dedup()));
    assertThat(unnumbered.cancelTimer()).isEqualTo(Markers.forJdbc(numbered.cancelTimer()));
    assertThat(unnumbered.toString()).doesNotContain("$").doesNotContainPattern("\\{\\w");
  }
}
