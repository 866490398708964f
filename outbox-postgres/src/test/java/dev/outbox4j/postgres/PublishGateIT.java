package dev.outbox4j.postgres;

import static org.assertj.core.api.Assertions.assertThat;

import dev.outbox4j.postgres.testing.PostgresExtension;
import dev.outbox4j.postgres.testing.TestDatabase;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.util.Collections;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

@ExtendWith(PostgresExtension.class)
class PublishGateIT {
  private final TestDatabase database;

  PublishGateIT(TestDatabase database) {
    this.database = database;
  }

  @ParameterizedTest
  @CsvSource({"AUTO,1", "AUTO,1000", "ALWAYS,1", "ALWAYS,1000"})
  void looksUpTheSleepersOfItsQueuesByIndex(NotifyMode mode, int messages) throws SQLException {
    database.update("truncate outbox_sleepers");
    database.update(
        "insert into outbox_sleepers select 'q' || i % 5000, i::text, now() + interval '1 hour' from generate_series(1, 20000) i");
    database.update("analyze outbox_sleepers");
    String plan = explain(mode, messages);
    assertThat(plan).contains("outbox_sleepers_pkey").doesNotContain("Seq Scan on outbox_sleepers");
  }

  private String explain(NotifyMode mode, int messages) throws SQLException {
    StringBuilder plan = new StringBuilder();
    try (Connection connection = database.plain().getConnection();
        PreparedStatement statement =
            connection.prepareStatement(
                "explain (analyze, buffers) "
                    + PublishSql.forJdbc(database.table(), mode).publish())) {
      String[] nulls = new String[messages];
      statement.setBytes(1, new byte[10]);
      statement.setArray(2, connection.createArrayOf("int4", filled(1, messages)));
      statement.setArray(3, connection.createArrayOf("int4", filled(10, messages)));
      statement.setArray(4, connection.createArrayOf("text", filled("q7", messages)));
      for (int i : new int[] {5, 6, 7, 10}) {
        statement.setArray(i, connection.createArrayOf("text", nulls));
      }
      statement.setArray(8, connection.createArrayOf("text", filled("{}", messages)));
      statement.setArray(9, connection.createArrayOf("int8", filled(0L, messages)));
      try (ResultSet rows = statement.executeQuery()) {
        while (rows.next()) {
          plan.append(rows.getString(1)).append('\n');
        }
      }
    }
    return plan.toString();
  }

  private static Object[] filled(Object value, int count) {
    return Collections.nCopies(count, value).toArray();
  }
}
