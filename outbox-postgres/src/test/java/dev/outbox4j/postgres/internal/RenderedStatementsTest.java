package dev.outbox4j.postgres.internal;

import static org.assertj.core.api.Assertions.assertThat;

import dev.outbox4j.postgres.OutboxTable;
import dev.outbox4j.postgres.testing.GoldenFile;
import java.util.Map;
import java.util.TreeMap;
import org.junit.jupiter.api.Test;

class RenderedStatementsTest {
  private static final OutboxTable TABLE = OutboxTable.named("out box").inSchema("Sales");

  @Test
  void areThoseOfTheFile() {
    Map<String, String> statements = new TreeMap<>();
    statements.put("before every statement", Sql.of(Preamble.TEXT, TABLE).text().replace(";", ""));
    put(statements, "claim", StoreSql.CLAIM);
    put(statements, "claim, measured", StoreSql.CLAIM_MEASURED);
    put(statements, "claim by halves, see what is due", StoreSql.PEEK);
    put(statements, "claim in slots", StoreSql.CLAIM_IN_SLOTS);
    put(statements, "open slots", StoreSql.OPEN_SLOTS);
    put(statements, "claim, then awake", StoreSql.AWAKE);
    put(statements, "claim, then look ahead", StoreSql.LOOK_AHEAD);
    put(statements, "claim, then look ahead, whole queue", StoreSql.LOOK_AHEAD_WHOLE_QUEUE);
    put(statements, "claim, then sleep", StoreSql.SLEEP);
    put(statements, "pass", StoreSql.PASS);
    put(statements, "forget", StoreSql.FORGET);
    put(statements, "count all queues, take the lease", SharedDepths.TAKE);
    put(statements, "count all queues, give the lease back", SharedDepths.GIVE_BACK);
    put(statements, "ack", FencedSql.ACK);
    put(statements, "retry", FencedSql.RETRY);
    put(statements, "reschedule", FencedSql.RESCHEDULE);
    put(statements, "renew", FencedSql.RENEW);
    put(statements, "release", FencedSql.RELEASE);
    put(statements, "hand over", FencedSql.HAND_OVER);

    assertThat(statements).allSatisfy((name, sql) -> assertThat(sql).doesNotContain("{", "}"));
    GoldenFile.assertSame(RenderedStatementsTest.class, "store-statements.sql", statements);
  }

  private static void put(Map<String, String> statements, String name, String template) {
    statements.put(name, Sql.of(template, TABLE).text());
  }

  private static void put(Map<String, String> statements, String name, FencedSql.Effect effect) {
    FencedSql sql = new FencedSql(effect);
    statements.put(name, withoutPreamble(sql.waiting(TABLE)));
    statements.put(name + ", passing locked rows by", withoutPreamble(sql.passingBy(TABLE)));
    if (sql.isUniform()) {
      statements.put(name + ", rows of one token", withoutPreamble(sql.waitingForOneToken(TABLE)));
    }
  }

  private static String withoutPreamble(Sql sql) {
    String preamble = Sql.of(Preamble.TEXT, TABLE).text();
    assertThat(sql.text()).startsWith(preamble);
    return sql.text().substring(preamble.length());
  }
}
