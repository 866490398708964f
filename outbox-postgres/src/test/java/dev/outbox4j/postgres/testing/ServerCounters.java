package dev.outbox4j.postgres.testing;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import com.zaxxer.hikari.HikariDataSource;
import java.sql.Connection;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.time.Duration;
import org.awaitility.core.ConditionFactory;

/** What the server has counted of a table, in a session that does everything that is counted. */
public final class ServerCounters implements AutoCloseable {
  /** From 15 on; before, a session reports after a while. */
  private static final String REPORTS_WHEN_ASKED =
      "select to_regprocedure('pg_stat_force_next_flush()') is not null";

  private static final String REPORT = "select pg_stat_force_next_flush() is not null";
  private static final String MARKS_REPORTED =
      "select n_tup_ins from pg_stat_user_tables where relname = 'mark'";

  private final HikariDataSource session;
  private final String table;
  private final boolean reportsWhenAsked;
  private int marks;

  /** Counts from now on; vacuum would count as well, so it is off. */
  public ServerCounters(TestDatabase database, String table) {
    database.update("alter table " + table + " set (autovacuum_enabled = off)");
    database.update("drop table if exists mark");
    database.update("create table mark (n int)");
    this.reportsWhenAsked = database.one(Boolean.class, REPORTS_WHEN_ASKED);
    settle(database);
    this.session = database.pool(1);
    this.table = table;
  }

  /** The session of the tests before may report what it did up to ten seconds later. */
  private void settle(TestDatabase database) {
    database.update("insert into mark values (1)");
    marks++;
    if (reportsWhenAsked) {
      database.one(Boolean.class, REPORT);
    }
    waiting().until(() -> database.one(Long.class, MARKS_REPORTED) == marks);
  }

  private static ConditionFactory waiting() {
    return await()
        .pollDelay(Duration.ZERO)
        .pollInterval(Duration.ofMillis(100))
        .atMost(Duration.ofSeconds(60));
  }

  /** Pages that were read, of the table and of its indexes, and scans of the table. */
  public record Reads(long pages, long sequentialScans) {}

  /** Returns the session that is counted. */
  public HikariDataSource session() {
    return session;
  }

  /** Runs a statement in it. */
  public void run(String sql) throws SQLException {
    try (Connection connection = session.getConnection();
        Statement statement = connection.createStatement()) {
      statement.execute(sql);
    }
  }

  /** Reads the counters once the session has reported all it did: what it did last included. */
  public Reads reads() throws SQLException {
    run("insert into mark values (1)");
    marks++;
    if (reportsWhenAsked) {
      run(REPORT);
    }
    waiting().until(() -> counter(MARKS_REPORTED) == marks);
    return new Reads(
        counter(
            "select heap_blks_read + heap_blks_hit + idx_blks_read + idx_blks_hit"
                + " from pg_statio_user_tables where relname = '"
                + table
                + "'"),
        sequentialScansOf(table));
  }

  /** Scans of any table, as known when the counters were read last. */
  public long sequentialScansOf(String other) throws SQLException {
    return counter("select seq_scan from pg_stat_user_tables where relname = '" + other + "'");
  }

  /** Scans of an index, as known when the counters were read last. */
  public long scansOfIndex(String index) throws SQLException {
    return counter(
        "select idx_scan from pg_stat_user_indexes where indexrelname = '" + index + "'");
  }

  /** How many pages the table has, without its indexes. */
  public long size() throws SQLException {
    return counter(
        "select pg_relation_size('" + table + "') / current_setting('block_size')::bigint");
  }

  private long counter(String sql) throws SQLException {
    try (Connection connection = session.getConnection();
        Statement statement = connection.createStatement();
        ResultSet row = statement.executeQuery(sql)) {
      assertThat(row.next()).isTrue();
      return row.getLong(1);
    }
  }

  @Override
  public void close() {
    session.close();
  }
}
