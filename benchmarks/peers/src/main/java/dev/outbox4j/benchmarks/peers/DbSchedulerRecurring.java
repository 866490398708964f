package dev.outbox4j.benchmarks.peers;

import com.github.kagkarlsson.scheduler.Scheduler;
import com.github.kagkarlsson.scheduler.SchedulerBuilder;
import com.github.kagkarlsson.scheduler.task.ExecutionComplete;
import com.github.kagkarlsson.scheduler.task.helper.RecurringTask;
import com.github.kagkarlsson.scheduler.task.helper.Tasks;
import com.github.kagkarlsson.scheduler.task.schedule.Schedule;
import com.zaxxer.hikari.HikariDataSource;
import dev.outbox4j.benchmarks.spi.Beats;
import dev.outbox4j.benchmarks.spi.Bench;
import dev.outbox4j.benchmarks.spi.Timing;
import java.sql.SQLException;
import java.time.Duration;
import java.time.Instant;
import java.util.List;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;

/**
 * db-scheduler with a recurring task for each timer. Options: {@code polling} (fetch or
 * lock-and-fetch), {@code threads}, {@code lowerLimit}, {@code upperLimit} and {@code pollMillis}.
 */
public final class DbSchedulerRecurring implements Timing {
  private @Nullable Scheduler scheduler;
  private @Nullable HikariDataSource pool;

  /** Made by the service loader. */
  public DbSchedulerRecurring() {}

  @Override
  public String name() {
    return "db-scheduler-recurring";
  }

  @Override
  public String contract() {
    return "at least once: one row for each timer, picked with heartbeats and fenced by a version;"
        + " instants that pass before a run has ended are left out";
  }

  @Override
  public void prepare(Bench bench) throws SQLException {
    DbScheduler.createTables(bench);
  }

  @Override
  public void start(Bench bench, Beats beats, Runs runs) {
    int threads = bench.number("threads");
    double lower = Double.parseDouble(bench.option("lowerLimit", ""));
    double upper = Double.parseDouble(bench.option("upperLimit", ""));
    HikariDataSource connections = bench.pool(threads + 5);
    List<RecurringTask<Void>> tasks =
        IntStream.range(0, beats.timers()).mapToObj(timer -> task(beats, timer, runs)).toList();
    SchedulerBuilder builder =
        Scheduler.create(connections)
            .startTasks(tasks)
            .threads(threads)
            .pollingInterval(Duration.ofMillis(bench.number("pollMillis")))
            .shutdownMaxWait(Duration.ofSeconds(2));
    switch (bench.option("polling", "")) {
      case "fetch" -> builder.pollUsingFetch(lower, upper);
      case "lock-and-fetch" -> builder.pollUsingLockAndFetch(lower, upper);
      default -> throw new IllegalArgumentException(bench.option("polling", ""));
    }
    Scheduler created = builder.build();
    created.start();
    scheduler = created;
    pool = connections;
  }

  private static RecurringTask<Void> task(Beats beats, int timer, Runs runs) {
    return Tasks.recurring("timer-" + timer, new Instants(beats, timer))
        .execute(
            (instance, context) -> runs.begin(timer, context.getExecution().getExecutionTime()));
  }

  @Override
  public void stop() {
    if (scheduler != null && pool != null) {
      scheduler.stop();
      pool.close();
    }
  }

  /** The next instant after a run has ended, as its own schedules of times of day have it. */
  private record Instants(Beats beats, int timer) implements Schedule {
    @Override
    public Instant getNextExecutionTime(ExecutionComplete complete) {
      return beats.next(timer, complete.getTimeDone());
    }

    @Override
    public boolean isDeterministic() {
      return true;
    }
  }
}
