package dev.outbox4j.benchmarks.peers;

import com.github.kagkarlsson.scheduler.Scheduler;
import com.github.kagkarlsson.scheduler.SchedulerBuilder;
import com.github.kagkarlsson.scheduler.serializer.Serializer;
import com.github.kagkarlsson.scheduler.task.helper.OneTimeTask;
import com.github.kagkarlsson.scheduler.task.helper.Tasks;
import com.zaxxer.hikari.HikariDataSource;
import dev.outbox4j.benchmarks.spi.BatchLoad;
import dev.outbox4j.benchmarks.spi.Bench;
import dev.outbox4j.benchmarks.spi.Draining;
import dev.outbox4j.benchmarks.spi.Sink;
import java.sql.SQLException;
import java.time.Duration;
import org.jspecify.annotations.Nullable;

/** db-scheduler with one-time tasks. */
abstract class DbScheduler implements Draining {
  private @Nullable Scheduler scheduler;
  private @Nullable HikariDataSource pool;

  /** The limits are multiples of the threads: when to read more, and how much. */
  abstract SchedulerBuilder polling(SchedulerBuilder builder, double lower, double upper);

  @Override
  public void prepare(Bench bench) throws SQLException {
    createTables(bench);
  }

  static void createTables(Bench bench) throws SQLException {
    bench.execute(
        """
        create table scheduled_tasks (
          task_name text not null,
          task_instance text not null,
          task_data bytea,
          execution_time timestamptz not null,
          picked boolean not null,
          picked_by text,
          last_success timestamptz,
          last_failure timestamptz,
          consecutive_failures int,
          last_heartbeat timestamptz,
          version bigint not null,
          priority smallint,
          primary key (task_name, task_instance))""",
        "create index execution_time_idx on scheduled_tasks (execution_time)",
        "create index last_heartbeat_idx on scheduled_tasks (last_heartbeat)");
  }

  @Override
  public void load(Bench bench, long first, long rows, int bytes) throws SQLException {
    BatchLoad.binary(
        bench,
        "insert into scheduled_tasks (task_name, task_instance, task_data, execution_time, picked, version)"
            + " select 'bench', m.sequence::text, m.payload, clock_timestamp(), false, 1"
            + " from unnest(?::bigint[], ?::bytea[]) as m(sequence, payload)",
        first,
        rows,
        bytes);
  }

  @Override
  public String countLeft() {
    return "select count(*) from scheduled_tasks";
  }

  @Override
  public void start(Bench bench, Sink sink) {
    int threads = bench.number("threads");
    HikariDataSource connections = bench.pool(threads + 5);
    OneTimeTask<byte[]> task =
        Tasks.oneTime("bench", byte[].class)
            .execute((instance, context) -> sink.handle(instance.getData()));
    Scheduler created =
        polling(
                Scheduler.create(connections, task)
                    .serializer(new Bytes())
                    .threads(threads)
                    .pollingInterval(Duration.ofMillis(bench.number("pollMillis")))
                    // what is left when the time is over need not be waited for
                    .shutdownMaxWait(Duration.ofSeconds(2)),
                Double.parseDouble(bench.option("lowerLimit", "")),
                Double.parseDouble(bench.option("upperLimit", "")))
            .build();
    created.start();
    scheduler = created;
    pool = connections;
  }

  @Override
  public void stop() {
    if (scheduler != null && pool != null) {
      scheduler.stop();
      pool.close();
    }
  }

  /** Payloads as they are. */
  private static final class Bytes implements Serializer {
    @Override
    public byte[] serialize(Object data) {
      return (byte[]) data;
    }

    @Override
    public <T> T deserialize(Class<T> type, byte[] serialized) {
      return type.cast(serialized);
    }
  }
}
