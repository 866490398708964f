package dev.outbox4j.test;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.outbox4j.OutboxMessage;
import dev.outbox4j.migrations.JobMigrations;
import dev.outbox4j.migrations.LockMigrations;
import dev.outbox4j.migrations.MonitorMigrations;
import dev.outbox4j.migrations.PollerMigrations;
import dev.outbox4j.migrations.TimerMigrations;
import dev.outbox4j.postgres.OutboxTable;
import dev.outbox4j.postgres.PostgresOutbox;
import dev.outbox4j.test.internal.kit.TestDatabase;
import java.sql.Connection;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.List;
import javax.sql.DataSource;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Nested;
import org.junit.jupiter.api.RepeatedTest;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;

@ExtendWith(OutboxPostgres.class)
class OutboxPostgresIT {
  private static final List<String> OF_FEATURES =
      List.of(
          "outbox_dlq_trips",
          "outbox_dlq_audit",
          "outbox_job",
          "outbox_job_end",
          "outbox_lock",
          "outbox_monitor",
          "outbox_monitor_event",
          "outbox_poller",
          "outbox_poller_history",
          "outbox_poller_quarantine",
          "outbox_timer",
          "outbox_timer_run");

  private final DataSource dataSource;
  private final OutboxTable table;

  OutboxPostgresIT(DataSource dataSource, OutboxTable table) {
    this.dataSource = dataSource;
    this.table = table;
  }

  @BeforeAll
  static void createATableOfTheService(DataSource dataSource) throws SQLException {
    execute(dataSource, "create table orders (id text primary key)");
    execute(dataSource, "insert into orders values ('o-1')");
  }

  @BeforeEach
  void isEmptyBeforeEachTest(DataSource same) throws SQLException {
    assertThat(one(same, "select count(*) from outbox")).isEqualTo("0");
    assertThat(one(same, "select count(*) from outbox_sleepers")).isEqualTo("0");
    assertThat(one(same, "select count(*) from outbox_dlq")).isEqualTo("0");
  }

  @RepeatedTest(3)
  void beginsEachTestWithEmptyTablesAndIds() throws SQLException {
    assertThat(publish()).isEqualTo(1);
    execute(
        dataSource,
        "insert into outbox_sleepers values ('orders', 'me', now(), false, now())",
        "insert into outbox_dlq (outbox, original_id, lease_token, queue, payload, deliveries_count,"
            + " attempts_count, created_at, available_at, failure_reason)"
            + " values ('public.outbox', 1, 1, 'orders', '', 1, 1, now(), now(), 'rejected')");
  }

  @RepeatedTest(2)
  void beginsEachTestWithoutWhatFeaturesHaveKept() throws SQLException {
    JobMigrations.of("public", "outbox").migrate(dataSource);
    LockMigrations.of("public", "outbox").migrate(dataSource);
    MonitorMigrations.of("public", "outbox").migrate(dataSource);
    PollerMigrations.of("public", "outbox").migrate(dataSource);
    TimerMigrations.of("public", "outbox").migrate(dataSource);
    for (String table : OF_FEATURES) {
      assertThat(one(dataSource, "select count(*) from " + table)).as(table).isEqualTo("0");
      fill(table);
    }
  }

  /** With a row in which each column that must have a value has one. */
  private void fill(String table) throws SQLException {
    String columns =
        """
         from information_schema.columns
        where table_schema = 'public' and table_name = '%s' and is_nullable = 'NO'
          and column_default is null and is_identity = 'NO'
        """
            .formatted(table);
    String names = one(dataSource, "select string_agg(quote_ident(column_name), ', ')" + columns);
    String values =
        one(
            dataSource,
            """
            select string_agg(
              case
                when data_type like 'timestamp%' then 'now()'
                when data_type in ('bigint', 'integer', 'smallint') then '1'
                when data_type = 'boolean' then 'true'
                when data_type like 'json%' then quote_literal('{}')
                when data_type = 'interval' then quote_literal('1 s')
                else quote_literal('x')
              end, ', ')
            """
                + columns);
    execute(dataSource, "insert into %s (%s) values (%s)".formatted(table, names, values));
  }

  @Test
  void leavesOtherTablesAlone() throws SQLException {
    assertThat(one(dataSource, "select id from orders")).isEqualTo("o-1");
  }

  @Test
  void hasASchemaThatIsValid() {
    assertThat(PostgresOutbox.on(dataSource, table).validator().validateSchema().faults())
        .isEmpty();
  }

  @Test
  void hasADatabaseOfItsOwn() throws SQLException {
    assertThat(one(dataSource, "select current_database()")).startsWith("outbox_test_");
  }

  @Nested
  class InANestedClass {
    @Test
    void hasTheSameDatabase(DataSource nested) throws SQLException {
      assertThat(one(nested, "select current_database()"))
          .isEqualTo(one(dataSource, "select current_database()"));
      assertThat(publish()).isEqualTo(1);
    }
  }

  @Test
  void saysWhoHoldsTheOutboxWhenItCannotBeEmptied() throws SQLException {
    try (Connection holder = dataSource.getConnection();
        Statement statement = holder.createStatement()) {
      holder.setAutoCommit(false);
      statement.execute("lock table outbox in access share mode");

      assertThatThrownBy(() -> TestDatabase.of(dataSource).empty(List.of("public.outbox"), true))
          .isInstanceOf(IllegalStateException.class)
          .hasMessageContaining("leave a transaction open");
      holder.rollback();
    }
    TestDatabase.of(dataSource).empty(List.of("public.outbox"), true);
  }

  @Test
  void saysThatNoTestClassRunsWithIt() {
    assertThatThrownBy(() -> OutboxPostgres.embedded().dataSource())
        .isInstanceOf(IllegalStateException.class)
        .hasMessageContaining("@RegisterExtension");
  }

  private long publish() throws SQLException {
    try (Connection tx = dataSource.getConnection()) {
      tx.setAutoCommit(false);
      long id =
          PostgresOutbox.publisher(table)
              .build()
              .publish(tx, OutboxMessage.to("orders").body("x").build())
              .rowId()
              .orElseThrow();
      tx.commit();
      return id;
    }
  }

  private static void execute(DataSource dataSource, String... statements) throws SQLException {
    try (Connection connection = dataSource.getConnection();
        Statement statement = connection.createStatement()) {
      for (String sql : statements) {
        statement.execute(sql);
      }
    }
  }

  private static String one(DataSource dataSource, String sql) throws SQLException {
    try (Connection connection = dataSource.getConnection();
        Statement statement = connection.createStatement();
        ResultSet row = statement.executeQuery(sql)) {
      row.next();
      return row.getString(1);
    }
  }
}
