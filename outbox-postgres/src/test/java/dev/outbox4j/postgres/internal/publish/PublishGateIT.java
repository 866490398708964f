package dev.outbox4j.postgres.internal.publish;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assumptions.assumeThat;

import dev.outbox4j.OutboxMessage;
import dev.outbox4j.migrations.OutboxMigrations;
import dev.outbox4j.postgres.NotifyMode;
import dev.outbox4j.postgres.OutboxPublisher;
import dev.outbox4j.postgres.OutboxTable;
import dev.outbox4j.postgres.PostgresOutbox;
import dev.outbox4j.postgres.testing.PostgresExtension;
import dev.outbox4j.postgres.testing.TestDatabase;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.Collections;
import java.util.List;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

@ExtendWith(PostgresExtension.class)
@Tag("plans")
class PublishGateIT {
  private final TestDatabase database;

  PublishGateIT(TestDatabase database) {
    this.database = database;
  }

  @ParameterizedTest
  @CsvSource({"AUTO,1", "AUTO,1000", "ALWAYS,1", "ALWAYS,1000"})
  void readsTheSleepersOnceAtMost(NotifyMode mode, int messages) throws SQLException {
    sleepers(20_000);
    if (messages == 1) {
      assertThat(explainSingle(mode))
          .contains("outbox_sleepers_pkey")
          .doesNotContain("Seq Scan on outbox_sleep")
          .doesNotContainPattern("loops=([02-9]|1\\d)");
    } else {
      String plan = explainMany(mode, messages);
      assertThat(plan).contains("InitPlan");
      assertThat(plan.lines().filter(line -> line.contains(" on outbox_sleepers")))
          .as(plan)
          .isNotEmpty()
          .allMatch(line -> line.contains("loops=1)"));
    }
  }

  @ParameterizedTest
  @CsvSource({"AUTO,1", "AUTO,1000", "ALWAYS,1", "ALWAYS,1000", "NEVER,1", "NEVER,1000"})
  void isNotPlannedAnewByEachCall(NotifyMode mode, int count) throws SQLException {
    assumeThat(database.one(Integer.class, "select current_setting('server_version_num')::int"))
        .as("before 14 the server counts no plans")
        .isGreaterThanOrEqualTo(140_000);
    List<OutboxMessage> messages = Collections.nCopies(count, OutboxMessage.to("q7").build());
    OutboxPublisher publisher = PostgresOutbox.publisher(database.table()).notify(mode).build();
    for (int sleepers : new int[] {0, 5, 1_000}) {
      sleepers(sleepers);
      try (Connection connection = database.plain().getConnection();
          Statement statement = connection.createStatement()) {
        connection.setAutoCommit(false);
        for (int i = 0; i < 20; i++) {
          publisher.publish(connection, messages);
        }
        try (ResultSet plans =
            statement.executeQuery(
                "select custom_plans, generic_plans from pg_prepared_statements where statement like '%insert into%'")) {
          assertThat(plans.next()).isTrue();
          assertThat(plans.getInt(1)).isEqualTo(5); // the server's habit before it compares
          assertThat(plans.getInt(2)).isGreaterThanOrEqualTo(10);
        }
        connection.rollback();
      }
    }
  }

  /** Which autovacuum has not analyzed yet: that takes fifty changes. */
  @Test
  void newTableIsNotTakenForALargeOne() throws SQLException {
    assumeThat(database.one(Integer.class, "select current_setting('server_version_num')::int"))
        .as("before 14 a table that is analyzed while empty counts as not analyzed")
        .isGreaterThanOrEqualTo(140_000);
    OutboxMigrations.of("public", "fresh").migrate(database.plain());
    database.update(
        "insert into fresh_sleepers values ('q7', 'one', now() - interval '1 hour', false, now())");
    assertThat(explainSingle(OutboxTable.named("fresh"), NotifyMode.AUTO))
        .contains("Seq Scan on fresh_sleepers")
        .doesNotContain("Bitmap");
  }

  private void sleepers(int count) {
    database.update("truncate outbox_sleepers");
    database.update(
        "insert into outbox_sleepers select 'q' || i % 5000, i::text, now() + interval '1 hour', false, now() from generate_series(1, ?) i",
        count);
    if (count > 0) {
      database.update("analyze outbox_sleepers");
    }
  }

  private String explainSingle(NotifyMode mode) throws SQLException {
    return explainSingle(database.table(), mode);
  }

  private String explainSingle(OutboxTable table, NotifyMode mode) throws SQLException {
    try (Connection connection = database.plain().getConnection();
        PreparedStatement statement =
            connection.prepareStatement(
                "explain (analyze, buffers) " + PublishSql.forJdbc(table, mode).single())) {
      statement.setBytes(1, new byte[10]);
      statement.setString(2, "q7");
      statement.setString(5, "{}");
      for (int i : new int[] {3, 4, 6}) {
        statement.setString(i, null);
      }
      // due in a minute, so that ALWAYS has to look, too
      statement.setLong(7, 60_000_000);
      return text(statement);
    }
  }

  private static String text(PreparedStatement explain) throws SQLException {
    StringBuilder plan = new StringBuilder();
    try (ResultSet rows = explain.executeQuery()) {
      while (rows.next()) {
        plan.append(rows.getString(1)).append('\n');
      }
    }
    return plan.toString();
  }

  private String explainMany(NotifyMode mode, int messages) throws SQLException {
    try (Connection connection = database.plain().getConnection();
        PreparedStatement statement =
            connection.prepareStatement(
                "explain (analyze, buffers) "
                    + PublishSql.forJdbc(database.table(), mode).plain())) {
      // what no message has is sent as an empty array
      statement.setBytes(1, new byte[10]);
      statement.setArray(2, connection.createArrayOf("int4", filled(1, messages)));
      statement.setArray(3, connection.createArrayOf("int4", filled(10, messages)));
      statement.setArray(4, connection.createArrayOf("text", filled("q7", messages)));
      for (int i : new int[] {5, 6, 7, 8, 10, 12}) {
        statement.setArray(i, connection.createArrayOf("text", new String[0]));
      }
      statement.setArray(9, connection.createArrayOf("int8", filled(60_000_000L, messages)));
      statement.setArray(11, connection.createArrayOf("int8", new Long[0]));
      statement.setArray(13, connection.createArrayOf("text", new String[] {"q7"}));
      statement.setArray(14, connection.createArrayOf("int8", new Long[] {60_000_000L}));
      statement.setArray(15, connection.createArrayOf("text", new String[1]));
      return text(statement);
    }
  }

  private static Object[] filled(Object value, int count) {
    return Collections.nCopies(count, value).toArray();
  }
}
