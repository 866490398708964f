package dev.outbox4j.benchmarks.ours;

import com.zaxxer.hikari.HikariDataSource;
import dev.outbox4j.OutboxSubscriber;
import dev.outbox4j.benchmarks.spi.Beats;
import dev.outbox4j.benchmarks.spi.Bench;
import dev.outbox4j.benchmarks.spi.Timing;
import dev.outbox4j.migrations.OutboxMigrations;
import dev.outbox4j.migrations.PauseMigrations;
import dev.outbox4j.migrations.TimerMigrations;
import dev.outbox4j.postgres.OutboxTable;
import dev.outbox4j.postgres.PostgresOutbox;
import dev.outbox4j.postgres.notify.pgjdbc.PgjdbcListen;
import dev.outbox4j.timer.OverlapPolicy;
import dev.outbox4j.timer.Schedule;
import dev.outbox4j.timer.Timer;
import dev.outbox4j.timer.Timers;
import java.sql.Connection;
import java.sql.SQLException;
import java.sql.Statement;
import java.time.Instant;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;
import org.postgresql.ds.PGSimpleDataSource;

/**
 * The timers of Outbox4j, as they come. Options: {@code workers}; {@code handled}, which is false
 * for ticks alone: the queue is paused, runs begin beside others, and each second a statement ends
 * them and deletes their messages, so that tables do not grow as they would not with handlers.
 */
public final class OutboxTimers implements Timing {
  private static final String END_ALL =
      """
      with ended as (
        update outbox_timer_run set status = 'succeeded', ended_at = now()
        where application = 'bench' and ended_at is null
        returning message_id)
      delete from outbox o using ended where o.id = ended.message_id
      """;

  /** Of the subscriber, and one for the tick. */
  private static final int CONNECTIONS = 3;

  private @Nullable Timers timers;
  private @Nullable HikariDataSource pool;
  private @Nullable ScheduledExecutorService ending;
  private @Nullable Connection endingOn;

  /** Made by the service loader. */
  public OutboxTimers() {}

  @Override
  public String name() {
    return "outbox4j-timers";
  }

  @Override
  public String contract() {
    return "each instant is decided once and handled at least once: a row and a message for each run;"
        + " an instant may wait or be left out while the run before it lasts; LISTEN, dead letters on";
  }

  @Override
  public void prepare(Bench bench) {
    OutboxMigrations.standard().migrate(bench.dataSource());
    TimerMigrations.of("public", "outbox").migrate(bench.dataSource());
    PauseMigrations.of("public", "outbox").migrate(bench.dataSource());
  }

  @Override
  public void start(Bench bench, Beats beats, Runs runs) {
    int workers = bench.option("workers", OutboxSubscriber.Builder.DEFAULT_WORKERS);
    HikariDataSource connections = bench.pool(CONNECTIONS + workers);
    PostgresOutbox outbox = PostgresOutbox.on(connections, OutboxTable.named("outbox"));
    boolean handled = !bench.option("handled", "true").equals("false");
    if (!handled) {
      outbox.pauses().pause("timers.bench", "benchmark", "ticks alone");
    }
    Timers.Builder builder =
        Timers.builder(outbox, "bench")
            .listen(PgjdbcListen.on(bench.dataSource()))
            .subscriber(
                settings -> {
                  settings.workers(workers);
                  if (!handled) {
                    settings.pausable();
                  }
                });
    for (int i = 0; i < beats.timers(); i++) {
      int timer = i;
      Schedule schedule = Schedule.every(beats.interval(), Instant.EPOCH.plus(beats.offset(timer)));
      Timer definition = Timer.of("timer-" + timer, schedule);
      builder.on(
          handled ? definition : definition.overlap(OverlapPolicy.ALLOW_ALL),
          run -> runs.begin(timer, run.instant()));
    }
    Timers built = builder.build();
    built.start();
    timers = built;
    pool = connections;
    if (!handled) {
      endEachSecond(bench);
    }
  }

  private void endEachSecond(Bench bench) {
    PGSimpleDataSource source = bench.dataSource();
    source.setApplicationName("harness"); // it is no cost of ticks
    ScheduledExecutorService seconds = Executors.newSingleThreadScheduledExecutor();
    try {
      Connection connection = source.getConnection();
      var unused = seconds.scheduleWithFixedDelay(() -> endAll(connection), 1, 1, TimeUnit.SECONDS);
      ending = seconds;
      endingOn = connection;
    } catch (SQLException e) {
      throw new IllegalStateException(e);
    }
  }

  private static void endAll(Connection connection) {
    try (Statement statement = connection.createStatement()) {
      statement.execute(END_ALL);
    } catch (SQLException e) {
      throw new IllegalStateException(e);
    }
  }

  @Override
  public void stop() throws SQLException {
    if (ending != null && endingOn != null) {
      ending.shutdownNow();
      endingOn.close();
    }
    if (timers != null && pool != null) {
      timers.stop();
      pool.close();
    }
  }
}
