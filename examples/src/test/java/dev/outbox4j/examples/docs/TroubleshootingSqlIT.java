package dev.outbox4j.examples.docs;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import dev.outbox4j.postgres.testing.PostgresExtension;
import dev.outbox4j.postgres.testing.TestDatabase;
import java.io.IOException;
import java.sql.Connection;
import java.sql.Statement;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.postgresql.PGConnection;

/** SQL of docs/operations/troubleshooting.md, run. */
@ExtendWith(PostgresExtension.class)
class TroubleshootingSqlIT {
  private final TestDatabase database;

  TroubleshootingSqlIT(TestDatabase database) {
    this.database = database;
  }

  @Test
  void findsTheRowsThatHaveBeenLeasedForLong() throws IOException {
    database.update(
        """
        insert into outbox (id, queue, payload, lease_until, leased_at, leased_by) values
          (1, 'orders', '', null, null, null),
          (2, 'orders', '', now() + interval '1 min', now() - interval '1 min', 'me'),
          (3, 'orders', '', now() + interval '1 min', now() - interval '11 min', 'me'),
          (4, 'orders', '', now() - interval '1 min', now() - interval '2 hours', 'dead')
        """);

    assertThat(sql(Long.class, "stuck")).containsExactly(4L, 3L);
  }

  @Test
  void findsTheTransactionThatHasLockedARow() throws Exception {
    database.update("insert into outbox (id, queue, payload) values (11, 'orders', '')");
    String sql = DocumentedSql.of("operations/troubleshooting.md", "locked");
    try (Connection person = database.plain().getConnection();
        Statement statement = person.createStatement()) {
      person.setAutoCommit(false);
      statement.execute("select from outbox where id = 11 for update");
      int pid = person.unwrap(PGConnection.class).getBackendPID();
      await().untilAsserted(() -> assertThat(database.list(Integer.class, sql)).contains(pid));
      person.rollback();
      assertThat(database.list(Integer.class, sql)).doesNotContain(pid);
    }
  }

  @Test
  void findsTheMessageThatKillsItsProcess() throws IOException {
    database.update("delete from outbox");
    database.update(
        """
        insert into outbox (id, queue, payload, deliveries_count, attempts_count) values
          (21, 'orders', 'small', 9, 0), (22, 'orders', 'the larger one', 9, 0),
          (23, 'orders', 'failed', 10, 9), (24, 'orders', 'new', 1, 0), (25, 'mails', '', 9, 0)
        """);

    assertThat(sql(Long.class, "suspects")).containsExactly(22L, 21L);
  }

  @Test
  void findsWhatFailsNowTheOldestFirst() throws IOException {
    database.update("delete from outbox");
    database.update(
        """
        insert into outbox (id, queue, payload, attempts_count, first_attempt_at, last_error) values
          (31, 'orders', '', 2, now() - interval '1 min', 'down'),
          (32, 'orders', '', 9, now() - interval '1 hour', 'down'),
          (33, 'orders', '', 0, null, null),
          (34, 'mails', '', 2, now(), 'down')
        """);

    assertThat(sql(Long.class, "failing")).containsExactly(32L, 31L);
  }

  @Test
  void findsPreparedTransactions() throws IOException {
    assertThat(sql(String.class, "prepared")).isEmpty(); // and that it can be run
  }

  @Test
  void tellsWhoHasConnections() throws IOException {
    assertThat(sql(Long.class, "connections")).isNotEmpty();
  }

  private <T> List<T> sql(Class<T> type, String name) throws IOException {
    return database.list(type, DocumentedSql.of("operations/troubleshooting.md", name));
  }
}
