package dev.outbox4j.dlq;

import static org.assertj.core.api.Assertions.assertThat;

import dev.outbox4j.postgres.OutboxTable;
import dev.outbox4j.postgres.internal.FencedSql;
import dev.outbox4j.postgres.internal.Following;
import dev.outbox4j.postgres.testing.GoldenFile;
import java.util.Map;
import org.junit.jupiter.api.Test;

class RenderedMoveTest {
  @Test
  void isThatOfTheFile() {
    OutboxTable table = OutboxTable.named("out box").inSchema("Sales");
    FencedSql sql = JdbcDeadLetterWriter.sql("\"Archive\".\"dead letters\"", Following.NOTHING);
    Map<String, String> statements =
        Map.of(
            "move", sql.waiting(table).text(),
            "move, passing locked rows by", sql.passingBy(table).text());

    assertThat(statements).allSatisfy((name, text) -> assertThat(text).doesNotContain("{", "}"));
    GoldenFile.assertSame(RenderedMoveTest.class, "move-statements.sql", statements);
  }
}
