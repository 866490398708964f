package dev.outbox4j.benchmarks.raw;

import dev.outbox4j.benchmarks.spi.Bench;
import dev.outbox4j.benchmarks.spi.Publisher;
import dev.outbox4j.benchmarks.spi.Publishing;
import dev.outbox4j.migrations.OutboxMigrations;
import java.io.IOException;
import java.sql.Array;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.SQLException;
import java.time.Duration;
import java.util.List;

/** Contestants on the very table that Outbox4j uses. */
abstract class OutboxRows extends TwoThreads implements Publishing {
  /** What Outbox4j sends before each of its statements; gone with it. */
  static final String BY_INDEX =
      """
      select now(),
        pg_snapshot_xmin(pg_current_snapshot())::text::bigint,
        current_setting('transaction_isolation'),
        set_config('statement_timeout', '12000', true),
        set_config('lock_timeout', '100', true),
        set_config('jit', 'off', true),
        set_config('plan_cache_mode', 'force_custom_plan', true),
        set_config('enable_seqscan', 'off', true),
        set_config('enable_bitmapscan', 'off', true),
        set_config('enable_sort', 'off', true),
        set_config('enable_hashjoin', 'off', true),
        set_config('enable_mergejoin', 'off', true);
      """;

  static final int CLAIM = 1000;

  @Override
  public void prepare(Bench bench) throws SQLException {
    OutboxMigrations.standard().migrate(bench.dataSource());
  }

  @Override
  public void load(Bench bench, long first, long rows, int bytes) throws SQLException, IOException {
    CopyLoad.into(bench, "outbox (queue, payload)", QUEUE, first, rows, bytes);
  }

  @Override
  public String countLeft() {
    return "select count(*) from outbox";
  }

  @Override
  public Publisher publisher(Bench bench) {
    return OutboxRows::insert;
  }

  private static void insert(Connection transaction, List<byte[]> payloads, Duration delay)
      throws SQLException {
    try (PreparedStatement statement =
        transaction.prepareStatement(
            "insert into outbox (queue, payload, available_at)"
                + " select ?, p, clock_timestamp() + make_interval(secs => ?) from unnest(?) as p")) {
      Array array = transaction.createArrayOf("bytea", payloads.toArray(new byte[0][]));
      statement.setString(1, QUEUE);
      statement.setDouble(2, delay.toNanos() / 1e9);
      statement.setArray(3, array);
      statement.executeUpdate();
      array.free();
    }
  }
}
