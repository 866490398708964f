package dev.outbox4j.postgres;

import static org.assertj.core.api.Assertions.assertThat;

import dev.outbox4j.postgres.testing.PostgresExtension;
import dev.outbox4j.postgres.testing.TestDatabase;
import java.sql.Connection;
import java.util.UUID;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.postgresql.ds.PGSimpleDataSource;

@ExtendWith(PostgresExtension.class)
class OutboxHealthCheckIT {
  private final TestDatabase database;

  OutboxHealthCheckIT(TestDatabase database) {
    this.database = database;
  }

  private static OutboxHealthCheck check(PGSimpleDataSource source, OutboxTable table) {
    PostgresOutbox outbox = PostgresOutbox.on(source, table);
    return outbox
        .healthCheck()
        .validator(outbox.validator().deadLetters("outbox_dlq"))
        .queues("orders", "mails");
  }

  @Test
  void tellsTheSchemaAndTheDepthOfEachQueue() {
    database.update("insert into outbox (queue, payload) values ('orders', 'x')");

    OutboxHealth health = check(database.plain(), database.table()).check();

    assertThat(health.healthy()).isTrue();
    assertThat(health.queues()).extracting(QueueDepth::queue).containsExactly("orders", "mails");
    assertThat(health.queues()).extracting(QueueDepth::ready).containsExactly(1L, 0L);
  }

  @Test
  void countsNothingWhileTheSchemaIsAtFault() {
    OutboxHealth health = check(database.plain(), OutboxTable.named("nowhere")).check();

    assertThat(health.healthy()).isFalse();
    assertThat(health.schema().faults()).hasSize(2);
    assertThat(health.queues()).isEmpty();
  }

  @Test
  void saysThatTheDatabaseDoesNotAnswer() {
    PGSimpleDataSource gone = database.plain();
    gone.setPortNumbers(new int[] {1});

    OutboxHealth health = check(gone, database.table()).check();

    assertThat(health.healthy()).isFalse();
    assertThat(health.schema().toString()).contains("database not reachable");
  }

  @Test
  void saysThatTheRoleMayNotCount() throws Exception {
    String role = "blind_" + UUID.randomUUID().toString().substring(0, 8);
    database.update("create role " + role + " login password 'secret'");
    PGSimpleDataSource blind = database.plain();
    blind.setUser(role);
    blind.setPassword("secret");

    OutboxHealth health = check(blind, database.table()).check();

    assertThat(health.healthy()).isFalse();
    assertThat(health.schema())
        .hasToString(
            "queues of outbox: expected a role that may count rows, and an answer in time, found permission denied (SQLSTATE 42501, PSQLException): ERROR: permission denied for table outbox; to fix it: grant select on the outbox table, or look for what blocks it");
    try (Connection connection = database.plain().getConnection()) {
      connection.createStatement().execute("drop role " + role);
    }
  }
}
