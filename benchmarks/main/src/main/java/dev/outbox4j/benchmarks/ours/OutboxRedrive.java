package dev.outbox4j.benchmarks.ours;

import static dev.outbox4j.dlq.DeadLetterFilter.queue;

import com.zaxxer.hikari.HikariDataSource;
import dev.outbox4j.benchmarks.spi.Bench;
import dev.outbox4j.benchmarks.spi.Redriving;
import dev.outbox4j.dlq.DeadLetterQueue;
import dev.outbox4j.dlq.DeadLetterReport;
import dev.outbox4j.dlq.DeadLetterWorklist;
import dev.outbox4j.dlq.Redrive;
import dev.outbox4j.migrations.OutboxMigrations;
import dev.outbox4j.postgres.OutboxTable;
import dev.outbox4j.postgres.PostgresOutbox;
import java.sql.SQLException;
import javax.sql.DataSource;

/**
 * The worklist of dead letters of Outbox4j. Letters have a thousand ordering keys, as those with
 * keys go back in turn. Options: {@code pool}, how many connections a HikariCP pool has; 0 is
 * without one.
 */
public final class OutboxRedrive implements Redriving {

  private static final String LETTERS =
      """
      insert into outbox_dlq (outbox, original_id, lease_token, queue, type, ordering_key, payload,
        headers, deliveries_count, attempts_count, created_at, available_at, failed_at,
        failure_reason, last_exception)
      select 'public.outbox', n, 1, 'bench', 'type', 'key-' || n %% 1000,
        decode(repeat('00', %d), 'hex'), '{}', 10, 10, now(), now(),
        now() - interval '1 day' + n * interval '1 ms', 'retry_terminal', 'failed'
      from generate_series(1, %d) n
      """;

  /** Made by the service loader. */
  public OutboxRedrive() {}

  @Override
  public String name() {
    return "outbox4j-redrive";
  }

  @Override
  public String contract() {
    return "each letter goes back once, also if the process dies: letters, their history, their messages and"
        + " the audit in one transaction of at most 100; each key in its order";
  }

  @Override
  public void prepare(Bench bench) {
    OutboxMigrations.standard().migrate(bench.dataSource());
  }

  @Override
  public void loadDead(Bench bench, long letters, int bytes) throws SQLException {
    bench.execute(LETTERS.formatted(bytes, letters), "vacuum analyze outbox_dlq");
  }

  @Override
  public long redrive(Bench bench, int perSecond) {
    int connections = bench.option("pool", 2);
    if (connections == 0) {
      return redrive(bench.dataSource(), perSecond);
    }
    try (HikariDataSource pool = bench.pool(connections)) {
      return redrive(pool, perSecond);
    }
  }

  private static long redrive(DataSource source, int perSecond) {
    DeadLetterReport report =
        DeadLetterWorklist.of(
                PostgresOutbox.on(source, OutboxTable.named("outbox")),
                DeadLetterQueue.in("outbox_dlq"))
            .where(queue("bench"))
            .redrive(Redrive.by("benchmark").perSecond(perSecond));
    if (!report.finished()) {
      throw new IllegalStateException("not all letters were put back: " + report);
    }
    return report.done();
  }

  @Override
  public String arrivals() {
    return "select extract(epoch from created_at) from outbox order by created_at";
  }
}
