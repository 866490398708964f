package dev.outbox4j.benchmarks.ours;

import com.zaxxer.hikari.HikariDataSource;
import dev.outbox4j.benchmarks.spi.Bench;
import dev.outbox4j.benchmarks.spi.Consuming;
import dev.outbox4j.benchmarks.spi.Lagging;
import dev.outbox4j.benchmarks.spi.Payloads;
import dev.outbox4j.benchmarks.spi.Publisher;
import dev.outbox4j.benchmarks.spi.Publishing;
import dev.outbox4j.benchmarks.spi.Sink;
import dev.outbox4j.migrations.OutboxMigrations;
import dev.outbox4j.migrations.PollerMigrations;
import dev.outbox4j.poller.Cursor;
import dev.outbox4j.poller.Deletes;
import dev.outbox4j.poller.Poller;
import dev.outbox4j.poller.Pollers;
import dev.outbox4j.poller.RowChange;
import dev.outbox4j.poller.Source;
import dev.outbox4j.postgres.OutboxTable;
import dev.outbox4j.postgres.PostgresOutbox;
import dev.outbox4j.triggers.metrics.MicrometerPollerMetrics;
import io.micrometer.core.instrument.simple.SimpleMeterRegistry;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.SQLException;
import java.time.Duration;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * A table poller of Outbox4j. What is published is a change of a row: of one of 100,000, each in
 * its turn. Options: {@code cursor}, which is {@code sequence}, {@code time} or {@code
 * transaction}; {@code pollMillis}; {@code batchSize}.
 */
public final class OutboxPollers implements Publishing, Consuming, Lagging {
  private static final int ROWS = 100_000;
  private static final int CONNECTIONS = 3;

  private static final String CHANGE =
      """
      insert into followed (id, payload)
      select c.n %% %d, c.payload from unnest(?::bigint[], ?::bytea[]) c (n, payload)
      on conflict (id) do update
      set payload = excluded.payload, change = nextval('followed_change'), changed_at = now(),
        changed_in = pg_current_xact_id()
      """
          .formatted(ROWS);

  private @Nullable HikariDataSource pool;
  private volatile @Nullable Pollers pollers;

  /** Made by the service loader. */
  public OutboxPollers() {}

  @Override
  public String name() {
    return "outbox4j-pollers";
  }

  @Override
  public String contract() {
    return "at least once, in the order of the cursor, rows that are committed late in their place; a"
        + " handler of batches, a lease, a position that is written after each batch";
  }

  private static Cursor cursor(Bench bench) {
    String kept = bench.option("cursor", "sequence");
    return switch (kept) {
      case "sequence" -> Cursor.sequence("change");
      case "time" -> Cursor.serverTime("changed_at");
      case "transaction" -> Cursor.transactionId("changed_in");
      default -> throw new IllegalArgumentException("no cursor is kept by " + kept);
    };
  }

  @Override
  public void prepare(Bench bench) throws SQLException {
    OutboxMigrations.standard().migrate(bench.dataSource());
    PollerMigrations.of("public", "outbox").migrate(bench.dataSource());
    bench.execute(
        "create sequence followed_change",
        """
        create table followed (
          id bigint primary key,
          change bigint not null default nextval('followed_change'),
          changed_at timestamptz not null default now(),
          changed_in xid8 not null default pg_current_xact_id(),
          payload bytea not null)
        """,
        "create index on followed (%s, id)".formatted(cursor(bench).column()));
  }

  @Override
  public Publisher publisher(Bench bench) {
    return (transaction, payloads, delay) -> change(transaction, payloads);
  }

  private static void change(Connection transaction, List<byte[]> payloads) throws SQLException {
    Long[] numbers = payloads.stream().map(Payloads::sequence).toArray(Long[]::new);
    try (PreparedStatement statement = transaction.prepareStatement(CHANGE)) {
      statement.setArray(1, transaction.createArrayOf("bigint", numbers));
      statement.setArray(
          2, transaction.createArrayOf("bytea", payloads.toArray(new byte[payloads.size()][])));
      statement.executeUpdate();
    }
  }

  @Override
  public void start(Bench bench, Sink sink) {
    HikariDataSource connections = bench.pool(CONNECTIONS);
    Poller poller =
        Poller.of("followed", Source.table("public", "followed"), cursor(bench), Deletes.ignored())
            .batchSize(bench.option("batchSize", 1_000))
            .pollInterval(Duration.ofMillis(bench.option("pollMillis", 100)));
    Pollers built =
        Pollers.builder(PostgresOutbox.on(connections, OutboxTable.named("outbox")), "bench")
            .on(poller, (rows, context) -> handle(rows, sink))
            .events(MicrometerPollerMetrics.on(new SimpleMeterRegistry()))
            .build();
    built.start();
    pollers = built;
    pool = connections;
  }

  private static void handle(List<RowChange> rows, Sink sink) {
    for (RowChange row : rows) {
      byte[] payload = row.get("payload", byte[].class);
      if (payload == null) {
        throw new IllegalStateException("a row has no payload: " + row);
      }
      sink.handle(payload);
    }
  }

  @Override
  public double lagNanos() {
    Pollers started = pollers;
    return started == null
        ? Double.NaN
        : started
            .health()
            .pollers()
            .get(0)
            .lag()
            .map(lag -> (double) lag.toNanos())
            .orElse(Double.NaN);
  }

  @Override
  public void stop() {
    Pollers started = pollers;
    if (started != null && pool != null) {
      started.stop();
      pool.close();
    }
  }
}
