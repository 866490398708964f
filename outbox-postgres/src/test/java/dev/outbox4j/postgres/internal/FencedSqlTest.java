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

  @Test
  void aWriteInATransactionOfItsOwnNamesItsOwnerAndNoClockThatStoodStill() {
    Sql sql = new FencedSql(FencedSql.RESCHEDULE).alone("select 1;", "app", "outbox");

    assertThat(sql.parameters()).contains("queue", "ids", "tokens", "owner");
    assertThat(sql.text())
        .startsWith("select 1;")
        .contains("o.leased_by = ?", "available_at = clock_timestamp()")
        .doesNotContain("available_at = now()");
  }

  @Test
  void tokensGrowWithAWriteOnlyWhereTheLeaseIsOfABucket() {
    FencedSql sql =
        new FencedSql(FencedSql.Effect.of("update {outbox} o set lease_token = {token} from"));

    assertThat(sql.waiting(TABLE).text()).contains("lease_token = o.lease_token from");
    assertThat(sql.ofBuckets().waiting(TABLE).text())
        .contains("lease_token = o.lease_token + 1 from");
  }

  /** Those of the preamble aside. */
  private static Set<String> parameters(Sql sql) {
    Set<String> names = new HashSet<>(sql.parameters());
    Sql.of(Preamble.TEXT, TABLE).parameters().forEach(names::remove);
    return names;
  }
}
