package dev.outbox4j.postgres.internal;

import static org.assertj.core.api.Assertions.assertThat;

import dev.outbox4j.postgres.OutboxTable;
import java.util.HashSet;
import java.util.Set;
import org.junit.jupiter.api.Test;

class FencedSqlTest {
  private static final OutboxTable TABLE = OutboxTable.named("outbox");

  @Test
  void aWriteTakesAQueueWithIdsAndTokens() {
    FencedSql sql = new FencedSql(FencedSql.Effect.of("delete from {outbox} o using"));

    assertThat(parameters(sql.waiting(TABLE))).containsExactlyInAnyOrder("queue", "ids", "tokens");
    assertThat(parameters(sql.passingBy(TABLE)))
        .containsExactlyInAnyOrder("queue", "ids", "tokens");
  }

  @Test
  void aWriteThatNotifiesTakesTheChannelAndItsOwnArraysToo() {
    FencedSql sql =
        new FencedSql(
            FencedSql.Effect.notifying(
                "update {outbox} o set type = a.kind from", ", :kinds::text[]", ", kind"));

    assertThat(parameters(sql.waiting(TABLE)))
        .containsExactlyInAnyOrder("queue", "ids", "tokens", "kinds", "channel");
    assertThat(parameters(sql.passingBy(TABLE)))
        .containsExactlyInAnyOrder("queue", "ids", "tokens", "kinds", "channel");
  }

  /** Those of the preamble aside. */
  private static Set<String> parameters(Sql sql) {
    Set<String> names = new HashSet<>(sql.parameters());
    Sql.of(Preamble.TEXT, TABLE).parameters().forEach(names::remove);
    return names;
  }
}
