package dev.outbox4j.benchmarks.raw;

import static org.assertj.core.api.Assertions.assertThat;

import dev.outbox4j.postgres.OutboxTable;
import dev.outbox4j.postgres.internal.FencedSql;
import dev.outbox4j.postgres.internal.Sql;
import java.lang.reflect.Field;
import java.util.List;
import org.junit.jupiter.api.Test;

/** The twin sends what Outbox4j sends: constants for parameters are the only differences. */
class TwinTest {

  @Test
  void claimsByTheSameStatement() throws Exception {
    String ours = constant("Preamble", "TEXT") + constant("StoreSql", "CLAIM");
    assertThat(LeaseTwin.CLAIM_ROWS)
        .isEqualToNormalizingWhitespace(
            positional(
                constants(ours)
                    .replace("least(now(), :up_to_at)", "now()")
                    .replace("(:up_to_at, :up_to_id)", "('infinity', 9223372036854775807)")
                    .replace(":lease", "60")
                    .replace(" and " + constant("Refusal", "ONE_TRANSACTION"), "")));
  }

  @Test
  void acksByTheSameStatement() throws Exception {
    FencedSql ours = new FencedSql((FencedSql.Effect) value("FencedSql", "ACK"));
    OutboxTable outbox = OutboxTable.named("outbox");
    assertThat(LeaseTwin.ACK).isEqualToNormalizingWhitespace(comparable(ours.waiting(outbox)));
    assertThat(LeaseTwin.ACK_OF_ONE_TOKEN)
        .isEqualToNormalizingWhitespace(comparable(ours.waitingForOneToken(outbox)));
  }

  private static String comparable(Sql sql) {
    String text = sql.text();
    List<String> timeouts = List.of("'12000'", "'100'"); // they come first
    for (String timeout : timeouts) {
      text = text.replaceFirst("\\?", timeout);
    }
    return text.replace("\"outbox\"", "outbox");
  }

  private static String constants(String sql) {
    return sql.replace(":statement_timeout", "'12000'").replace(":lock_timeout", "'100'");
  }

  private static String positional(String sql) {
    return sql.replace("{outbox}", "outbox").replaceAll("(?<!:):[a-z_]+", "?");
  }

  private static String constant(String type, String name) throws Exception {
    return (String) value(type, name);
  }

  private static Object value(String type, String name) throws Exception {
    Field field = Class.forName("dev.outbox4j.postgres.internal." + type).getDeclaredField(name);
    field.setAccessible(true);
    return field.get(null);
  }
}
