package dev.outbox4j.dlq;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import com.zaxxer.hikari.HikariDataSource;
import dev.outbox4j.postgres.PostgresOutbox;
import dev.outbox4j.postgres.testing.PostgresExtension;
import dev.outbox4j.postgres.testing.TestDatabase;
import dev.outbox4j.spi.OpenDeadLetters;
import java.sql.Connection;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.time.Duration;
import java.util.Set;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;

/** What is read to find the keys on hold, counted by the server. One session runs everything. */
@ExtendWith(PostgresExtension.class)
@Tag("plans")
class OpenDeadLettersPlanIT {
  private static final int LETTERS = 50_000;
  private static final int KEYS = 100;

  private final TestDatabase database;
  private int marks;

  OpenDeadLettersPlanIT(TestDatabase database) {
    this.database = database;
  }

  @Test
  void keysAreFoundByTheirIndexHoweverStaleTheStatisticsAre() throws SQLException {
    database.update("alter table outbox_dlq set (autovacuum_enabled = off)");
    database.update("create table mark (n int)");
    try (HikariDataSource session = database.pool(1)) {
      OpenDeadLetters open =
          DeadLetterQueue.in("outbox_dlq")
              .bind(PostgresOutbox.on(session, database.table()).store())
              .open()
              .orElseThrow();
      fill(session, "others", LETTERS, "'others-' || n");
      run(session, "analyze outbox_dlq");
      fill(session, "orders", LETTERS, "'other-' || n");
      fill(session, "orders", KEYS, "'key-' || n");
      findsFew(session, open);
      run(session, "vacuum analyze outbox_dlq");
      findsFew(session, open);
      for (int seeming : new int[] {0, 1, 100}) {
        run(
            session,
            "update pg_class set reltuples = " + seeming + " where relname = 'outbox_dlq'");
        findsFew(session, open);
      }
    }
  }

  private static void fill(HikariDataSource session, String queue, int count, String key)
      throws SQLException {
    run(
        session,
        """
        insert into outbox_dlq (outbox, original_id, lease_token, queue, ordering_key, payload,
          deliveries_count, attempts_count, created_at, available_at, failure_reason)
        select 'public.outbox', n, 1, '%s', %s, 'x', 1, 1, now(), now(), 'rejected'
        from generate_series(1, %d) n"""
            .formatted(queue, key, count));
  }

  private void findsFew(HikariDataSource session, OpenDeadLetters open) throws SQLException {
    Set<String> asked =
        IntStream.rangeClosed(1, 2 * KEYS).mapToObj(n -> "key-" + n).collect(Collectors.toSet());
    long before = pages(session);
    assertThat(open.among("orders", asked)).hasSize(KEYS);
    assertThat(pages(session) - before).isBetween(1L, 12L * KEYS);
  }

  /** Counted once the session has reported all it did: what it did last included. */
  private long pages(HikariDataSource session) throws SQLException {
    run(session, "insert into mark values (1)");
    marks++;
    await()
        .pollInterval(Duration.ofMillis(100))
        .atMost(Duration.ofSeconds(60))
        .until(
            () ->
                counter(session, "select n_tup_ins from pg_stat_user_tables where relname = 'mark'")
                    == marks);
    return counter(
        session,
        "select heap_blks_read + heap_blks_hit + idx_blks_read + idx_blks_hit"
            + " from pg_statio_user_tables where relname = 'outbox_dlq'");
  }

  private static void run(HikariDataSource session, String sql) throws SQLException {
    try (Connection connection = session.getConnection();
        Statement statement = connection.createStatement()) {
      statement.execute(sql);
    }
  }

  private static long counter(HikariDataSource session, String sql) throws SQLException {
    try (Connection connection = session.getConnection();
        Statement statement = connection.createStatement();
        ResultSet row = statement.executeQuery(sql)) {
      assertThat(row.next()).isTrue();
      return row.getLong(1);
    }
  }
}
