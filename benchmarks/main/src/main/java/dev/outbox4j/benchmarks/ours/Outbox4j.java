package dev.outbox4j.benchmarks.ours;

import com.impossibl.postgres.jdbc.PGDataSource;
import com.zaxxer.hikari.HikariDataSource;
import dev.outbox4j.Delivery;
import dev.outbox4j.FailureReason;
import dev.outbox4j.OutboxMessage;
import dev.outbox4j.OutboxSubscriber;
import dev.outbox4j.Outcome;
import dev.outbox4j.Payload;
import dev.outbox4j.RetryPolicy;
import dev.outbox4j.SubscriberEvents;
import dev.outbox4j.benchmarks.raw.BareNotify;
import dev.outbox4j.benchmarks.raw.CopyLoad;
import dev.outbox4j.benchmarks.spi.Bench;
import dev.outbox4j.benchmarks.spi.Draining;
import dev.outbox4j.benchmarks.spi.Publisher;
import dev.outbox4j.benchmarks.spi.Publishing;
import dev.outbox4j.benchmarks.spi.Sink;
import dev.outbox4j.dlq.DeadLetterQueue;
import dev.outbox4j.metrics.MicrometerMetrics;
import dev.outbox4j.migrations.DedupMigrations;
import dev.outbox4j.migrations.InboxMigrations;
import dev.outbox4j.migrations.JobMigrations;
import dev.outbox4j.migrations.LockMigrations;
import dev.outbox4j.migrations.MonitorMigrations;
import dev.outbox4j.migrations.OrderedMigrations;
import dev.outbox4j.migrations.OutboxMigrations;
import dev.outbox4j.migrations.PauseMigrations;
import dev.outbox4j.migrations.PollerMigrations;
import dev.outbox4j.migrations.SlotMigrations;
import dev.outbox4j.migrations.TimerMigrations;
import dev.outbox4j.postgres.NotifyMode;
import dev.outbox4j.postgres.OutboxPublisher;
import dev.outbox4j.postgres.OutboxTable;
import dev.outbox4j.postgres.PostgresOutbox;
import dev.outbox4j.postgres.PostgresStore;
import dev.outbox4j.postgres.notify.ng.PgjdbcNgListen;
import dev.outbox4j.postgres.notify.pgjdbc.PgjdbcListen;
import dev.outbox4j.postgres.notify.r2dbc.R2dbcListen;
import dev.outbox4j.spi.NotificationSource;
import io.micrometer.core.instrument.simple.SimpleMeterRegistry;
import java.io.IOException;
import java.net.URI;
import java.sql.Connection;
import java.sql.SQLException;
import java.sql.Statement;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import javax.sql.DataSource;
import org.jspecify.annotations.Nullable;

/**
 * Outbox4j with everything on: metrics, renewal, dead letters and LISTEN; and the SQL that knows
 * its tables. Options: {@code queue}, {@code name}, {@code workers}, {@code batchSize}, {@code
 * listen} (r2dbc, ng, pgjdbc or none), {@code notify}, {@code minPollMillis} and {@code pollMillis}
 * (the shortest and the longest wait), {@code ordered} (1: by buckets), {@code keys} (how many
 * ordering keys the rows have) and {@code features} (1: beside the tables of all optional features,
 * of which it uses none).
 */
public final class Outbox4j implements Draining, Publishing {
  /** Where publishers notify. */
  public static final String CHANNEL = "outbox_outbox";

  /** Makes publishers notify although nobody works. */
  public static final String FALL_ASLEEP_FOR_A_DAY =
      "insert into outbox_sleepers (queue, subscriber, wake_at, on_watch, until)"
          + " values ('bench', 'sleeper', now() + interval '1 day', false, now())";

  /** How many rows there are, and how many of them are leased. */
  public static final String ROWS_AND_LEASED =
      "select count(*), count(*) filter (where lease_until > now()) from outbox";

  /** Adds the rows that {@link #DELETE_OLD} deletes, all due before any other; 256 B each. */
  public static final String INSERT_OLD =
      "insert into outbox (queue, payload, available_at)"
          + " select 'bench', decode(repeat('00', 256), 'hex'),"
          + " now() - interval '2 hours' + g * interval '1 ms' from generate_series(1, %d) as g";

  /** Deletes them. */
  public static final String DELETE_OLD =
      "delete from outbox where available_at < now() - interval '30 minutes'";

  /** Looks for a row that is due among all that are or were, as a claim does. */
  public static final String FIRST_DUE =
      "select id, payload from outbox where queue = 'bench' and available_at is not null"
          + " and available_at <= now() order by available_at, id limit 1";

  private static final String QUEUE = "bench";

  /** The option for messages of a key whose first one waits for a retry, among the others. */
  private static final String BLOCKED = "blocked";

  private static final String BLOCK =
      "insert into outbox (queue, payload, ordering_key)"
          + " select '%s', decode(repeat('00', %d), 'hex'), 'blocked' from generate_series(1, %d)";

  /** As a retry does. */
  private static final String FAIL_BLOCKED =
      "update outbox set available_at = now() + interval '1 day', lease_token = lease_token + 1,"
          + " deliveries_count = 1, attempts_count = 1, last_error = 'failed'"
          + " where ordering_key = 'blocked'";

  private static final int SLICES = 100;
  private static final OutboxTable TABLE = OutboxTable.named("outbox");

  private @Nullable OutboxSubscriber subscriber;
  private @Nullable HikariDataSource pool;

  /** Made by the service loader. */
  public Outbox4j() {}

  @Override
  public String name() {
    return "outbox4j";
  }

  @Override
  public String contract() {
    return "at least once: leases of rows in batches, or of buckets if ordered; renewed, fenced, deleted in"
        + " batches; metrics, LISTEN, dead letters on";
  }

  @Override
  public boolean reportsAcks() {
    return true;
  }

  @Override
  public void prepare(Bench bench) {
    OutboxMigrations.standard().migrate(bench.dataSource());
    if (isOrdered(bench)) {
      OrderedMigrations.of("public", "outbox", queue(bench)).migrate(bench.dataSource());
    }
    if (bench.option("features", 0) == 1) {
      migrateFeatures(bench.dataSource());
    }
  }

  private static void migrateFeatures(DataSource dataSource) {
    DedupMigrations.of("public", "outbox").migrate(dataSource);
    SlotMigrations.of("public", "outbox").migrate(dataSource);
    PauseMigrations.of("public", "outbox").migrate(dataSource);
    OrderedMigrations.of("public", "outbox", "in-order").migrate(dataSource);
    LockMigrations.of("public", "outbox").migrate(dataSource);
    TimerMigrations.of("public", "outbox").migrate(dataSource);
    MonitorMigrations.of("public", "outbox").migrate(dataSource);
    PollerMigrations.of("public", "outbox").migrate(dataSource);
    JobMigrations.of("public", "outbox").migrate(dataSource);
    InboxMigrations.of("public", "inbox").migrate(dataSource);
  }

  private static boolean isOrdered(Bench bench) {
    return bench.option("ordered", 0) == 1;
  }

  @Override
  public void load(Bench bench, long first, long rows, int bytes) throws SQLException, IOException {
    int blocked = first == 0 ? bench.option(BLOCKED, 0) : 0; // not in warm-ups
    if (blocked == 0) {
      copy(bench, first, rows, bytes);
      return;
    }
    try (Connection connection = bench.dataSource().getConnection();
        Statement statement = connection.createStatement()) {
      statement.execute(BLOCK.formatted(queue(bench), bytes, 1));
      statement.execute(FAIL_BLOCKED);
      for (int slice = 0; slice < SLICES; slice++) {
        statement.execute(BLOCK.formatted(queue(bench), bytes, blocked / SLICES));
        copy(bench, first + slice * rows / SLICES, rows / SLICES, bytes);
      }
    }
  }

  private static void copy(Bench bench, long first, long rows, int bytes)
      throws SQLException, IOException {
    int keys = bench.option("keys", 0);
    CopyLoad.into(
        bench,
        "outbox (queue, payload" + (keys > 0 ? ", ordering_key" : "") + ")",
        QUEUE,
        first,
        rows,
        bytes,
        keys);
  }

  @Override
  public String countLeft() {
    return "select count(*) from outbox where ordering_key is distinct from 'blocked'";
  }

  @Override
  public void start(Bench bench, Sink sink) {
    HikariDataSource connections = bench.pool(2);
    int minPoll =
        bench.option("minPollMillis", (int) OutboxSubscriber.Builder.DEFAULT_MIN_POLL.toMillis());
    int maxPoll = bench.option("pollMillis", 10_000);
    OutboxSubscriber.Builder builder =
        OutboxSubscriber.builder(queue(bench))
            .name(bench.option("name", queue(bench)))
            .store(store(bench, connections))
            .workers(bench.option("workers", OutboxSubscriber.Builder.DEFAULT_WORKERS))
            .batchSize(bench.option("batchSize", OutboxSubscriber.Builder.DEFAULT_BATCH_SIZE))
            .poll(Duration.ofMillis(minPoll), Duration.ofMillis(maxPoll))
            .retry(RetryPolicy.constant(Duration.ofMillis(1)))
            .deadLetters(DeadLetterQueue.in("outbox_dlq"))
            .events(MicrometerMetrics.on(new SimpleMeterRegistry()))
            .events(new Acks(sink))
            .otherwise(
                (payload, delivery) -> {
                  handle(delivery, sink);
                });
    listen(bench).ifPresent(builder::listen);
    if (isOrdered(bench)) {
      builder.ordered();
    }
    OutboxSubscriber built = builder.build();
    built.start();
    subscriber = built;
    pool = connections;
  }

  private static PostgresStore store(Bench bench, HikariDataSource connections) {
    PostgresOutbox outbox = PostgresOutbox.on(connections, TABLE);
    int millis = bench.option("networkTimeoutMillis", 0);
    return millis == 0 ? outbox.store() : outbox.store(Duration.ofMillis(millis));
  }

  private static void handle(Delivery delivery, Sink sink) {
    switch (sink.handle(delivery.payload().bytes())) {
      case ACK -> {
        // nothing to decide
      }
      case RETRY -> throw new IllegalStateException("fails as it was told to");
      case REJECT -> delivery.decide(Outcome.reject("as it was told to"));
    }
  }

  private static Optional<NotificationSource> listen(Bench bench) {
    URI uri = URI.create(bench.url().substring("jdbc:".length()));
    return switch (bench.option("listen", "r2dbc")) {
      case "none" -> Optional.empty();
      case "r2dbc" -> Optional.of(R2dbcListen.on(BareNotify.r2dbc(bench)));
      case "pgjdbc" -> Optional.of(PgjdbcListen.on(bench.dataSource()));
      case "ng" -> {
        PGDataSource source = new PGDataSource();
        source.setServerName(uri.getHost());
        source.setPortNumber(uri.getPort());
        source.setDatabaseName(uri.getPath().substring(1));
        source.setUser(bench.user());
        source.setPassword(bench.password());
        yield Optional.of(PgjdbcNgListen.on(source));
      }
      default -> throw new IllegalArgumentException(bench.option("listen", ""));
    };
  }

  @Override
  public void stop() {
    if (subscriber != null && pool != null) {
      subscriber.stop();
      pool.close();
    }
  }

  private static String queue(Bench bench) {
    return bench.option("queue", QUEUE);
  }

  @Override
  public Publisher publisher(Bench bench) {
    OutboxPublisher publisher =
        PostgresOutbox.publisher(TABLE)
            .notify(NotifyMode.valueOf(bench.option("notify", "AUTO")))
            .build();
    String queue = queue(bench);
    return (transaction, payloads, delay) -> {
      List<OutboxMessage> messages = new ArrayList<>(payloads.size());
      for (byte[] payload : payloads) {
        OutboxMessage.Builder message = OutboxMessage.to(queue).body(Payload.of(payload));
        messages.add(delay.isZero() ? message.build() : message.deliverIn(delay).build());
      }
      if (messages.size() == 1) {
        publisher.publish(transaction, messages.get(0));
      } else {
        publisher.publish(transaction, messages);
      }
    };
  }

  private static final class Acks implements SubscriberEvents {
    private final Sink sink;

    Acks(Sink sink) {
      this.sink = sink;
    }

    @Override
    public void claimed(String subscriber, int rows, Duration took) {
      sink.claimed(rows);
    }

    @Override
    public void acked(String subscriber, Delivery delivery) {
      sink.acked(1);
    }

    @Override
    public void deadLettered(
        String subscriber, Delivery delivery, FailureReason reason, boolean written) {
      sink.acked(1);
    }
  }
}
