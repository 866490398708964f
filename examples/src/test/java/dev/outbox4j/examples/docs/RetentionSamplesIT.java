package dev.outbox4j.examples.docs;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import dev.outbox4j.dlq.DeadLetterQueue;
import dev.outbox4j.dlq.DeadLetterRetention;
import dev.outbox4j.dlq.DeadLetterRetentionHealth;
import dev.outbox4j.migrations.DeadLetterMigrations;
import dev.outbox4j.migrations.OutboxMigrations;
import dev.outbox4j.migrations.PartitionInterval;
import dev.outbox4j.postgres.OutboxTable;
import dev.outbox4j.postgres.PostgresOutbox;
import dev.outbox4j.postgres.testing.PostgresExtension;
import dev.outbox4j.postgres.testing.TestDatabase;
import java.sql.Connection;
import java.sql.SQLException;
import java.sql.Statement;
import java.time.Duration;
import javax.sql.DataSource;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;

@ExtendWith(PostgresExtension.class)
class RetentionSamplesIT {
  private final TestDatabase database;
  private final OutboxTable table = OutboxTable.named("outbox");

  RetentionSamplesIT(TestDatabase database) {
    this.database = database;
  }

  @Test
  void keepsATableSmall() {
    DataSource dataSource = database.plain();
    // tag::retention
    DeadLetterRetention retention =
        DeadLetterRetention.builder(
                PostgresOutbox.on(dataSource, table), DeadLetterQueue.in("outbox_dlq"))
            .keepResolved(Duration.ofDays(30)) // after they were resolved
            .build();
    retention.start(); // once a day from now on
    DeadLetterRetentionHealth health = retention.health();
    retention.stop();
    // end::retention
    assertThat(health.healthy()).isTrue();
    assertThat(health.running()).isTrue();
    retention.start();
    await().until(() -> retention.health().lastRun().isPresent());
    retention.stop();
  }

  @Test
  void partitionsATableAndMakesItPlainAgain() throws SQLException {
    DataSource dataSource = database.plain();
    // tag::partition
    OutboxMigrations.of("public", "outbox")
        .partitionedDeadLetters(PartitionInterval.MONTH)
        .migrate(dataSource);
    // end::partition
    assertThat(kind()).isEqualTo("p");
    // tag::unpartition
    DeadLetterMigrations.of("public", "outbox_dlq").unpartition(dataSource);
    // end::unpartition
    assertThat(kind()).isEqualTo("r");
    // tag::partition-sql
    String sql =
        DeadLetterMigrations.of("public", "outbox_dlq")
            .partitionedBy(PartitionInterval.MONTH)
            .partitionSql();
    // end::partition-sql
    try (Connection connection = dataSource.getConnection();
        Statement statement = connection.createStatement()) {
      statement.execute(sql);
    }
    assertThat(kind()).isEqualTo("p");
    DeadLetterMigrations.of("public", "outbox_dlq").unpartition(dataSource);
  }

  private String kind() {
    return database.one(
        String.class, "select relkind::text from pg_class where oid = 'outbox_dlq'::regclass");
  }
}
