package dev.outbox4j.dlq;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import com.zaxxer.hikari.HikariDataSource;
import dev.outbox4j.postgres.PostgresOutbox;
import dev.outbox4j.postgres.testing.PostgresExtension;
import dev.outbox4j.postgres.testing.TestDatabase;
import dev.outbox4j.spi.DeadLetterEntry;
import dev.outbox4j.spi.DeadLetterWriter;
import java.sql.Connection;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.time.Duration;
import java.util.List;
import java.util.stream.LongStream;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;

/** What a move reads of the outbox, counted by the server. One session runs everything. */
@ExtendWith(PostgresExtension.class)
@Tag("plans")
class MovePlanIT {
  private static final int ROWS = 200_000;
  private static final int BATCH = 100;

  private final TestDatabase database;
  private int marks;

  MovePlanIT(TestDatabase database) {
    this.database = database;
  }

  private record Reads(long pages, long sequentialScans) {}

  @Test
  void probesThePrimaryKeyHoweverStaleTheStatisticsAre() throws SQLException {
    database.update("alter table outbox set (autovacuum_enabled = off)");
    database.update("create table mark (n int)");
    try (HikariDataSource session = database.pool(1)) {
      DeadLetterWriter writer =
          DeadLetterQueue.in("outbox_dlq")
              .bind(PostgresOutbox.on(session, database.table()).store());
      run(session, "analyze outbox");
      for (int i = 0; i < 12; i++) {
        assertThat(writer.write(List.of(Rows.entry("orders", i + 1L))).done()).isEmpty();
      }
      run(
          session,
          "insert into outbox (id, queue, payload, lease_token, lease_until)"
              + " select n, 'orders', decode(repeat('ab', 256), 'hex'), "
              + Rows.TOKEN
              + ", now() + interval '1 hour' from generate_series(1, "
              + ROWS
              + ") n");

      readsFew(session, writer, 1);
      run(session, "analyze outbox");
      readsFew(session, writer, 2);
      run(session, "vacuum outbox");
      readsFew(session, writer, 3);
      for (int seeming : List.of(0, 1, 100)) { // as after a drain, when the next burst comes
        run(session, "update pg_class set reltuples = " + seeming + " where relname = 'outbox'");
        readsFew(session, writer, 4 + seeming);
      }
    }
  }

  /** Moves rows that lie far apart; a scan of the table would read thousands of pages. */
  private void readsFew(HikariDataSource session, DeadLetterWriter writer, int offset)
      throws SQLException {
    List<DeadLetterEntry> entries =
        LongStream.range(0, BATCH)
            .mapToObj(n -> Rows.entry("orders", n * (ROWS / BATCH) + offset))
            .toList();
    Reads before = reads(session);

    assertThat(writer.write(entries).done()).hasSize(BATCH);

    Reads after = reads(session);
    assertThat(after.sequentialScans()).isEqualTo(before.sequentialScans());
    assertThat(after.pages() - before.pages()).isBetween((long) BATCH, BATCH * 8L);
  }

  /** Reads the counters once the session has reported all it did: what it did last included. */
  private Reads reads(HikariDataSource session) throws SQLException {
    run(session, "insert into mark values (1)");
    marks++;
    await()
        .pollInterval(Duration.ofMillis(100))
        .atMost(Duration.ofSeconds(60))
        .until(
            () ->
                counter(session, "select n_tup_ins from pg_stat_user_tables where relname = 'mark'")
                    == marks);
    return new Reads(
        counter(
            session,
            "select heap_blks_read + heap_blks_hit + idx_blks_read + idx_blks_hit"
                + " from pg_statio_user_tables where relname = 'outbox'"),
        counter(session, "select seq_scan from pg_stat_user_tables where relname = 'outbox'"));
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
