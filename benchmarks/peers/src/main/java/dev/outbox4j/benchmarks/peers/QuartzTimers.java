package dev.outbox4j.benchmarks.peers;

import com.zaxxer.hikari.HikariDataSource;
import dev.outbox4j.benchmarks.spi.Beats;
import dev.outbox4j.benchmarks.spi.Bench;
import dev.outbox4j.benchmarks.spi.Timing;
import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.sql.Connection;
import java.sql.SQLException;
import java.time.Instant;
import java.util.Date;
import java.util.HashMap;
import java.util.Map;
import java.util.Objects;
import java.util.Properties;
import java.util.Set;
import org.jspecify.annotations.Nullable;
import org.quartz.Job;
import org.quartz.JobBuilder;
import org.quartz.JobDetail;
import org.quartz.JobExecutionContext;
import org.quartz.Scheduler;
import org.quartz.SchedulerException;
import org.quartz.SimpleScheduleBuilder;
import org.quartz.Trigger;
import org.quartz.TriggerBuilder;
import org.quartz.impl.StdSchedulerFactory;
import org.quartz.impl.jdbcjobstore.JobStoreTX;
import org.quartz.impl.jdbcjobstore.PostgreSQLDelegate;
import org.quartz.simpl.SimpleThreadPool;
import org.quartz.utils.ConnectionProvider;
import org.quartz.utils.DBConnectionManager;

/**
 * Quartz with its JDBC job store, clustered, as the others would be: a job with a trigger for each
 * timer. Options: {@code threads}, {@code batch} (how many triggers it takes at a time).
 */
public final class QuartzTimers implements Timing {
  private static final String TABLES = "org/quartz/impl/jdbcjobstore/tables_postgres.sql";
  private static final String SOURCE = "bench";

  private @Nullable Scheduler scheduler;
  private @Nullable HikariDataSource pool;

  /** Made by the service loader. */
  public QuartzTimers() {}

  @Override
  public String name() {
    return "quartz";
  }

  @Override
  public String contract() {
    return "at most once, unless a job asks for recovery: one row for each timer, taken in batches"
        + " under one lock; clustered";
  }

  @Override
  public void prepare(Bench bench) throws SQLException, IOException {
    try (InputStream script =
        Objects.requireNonNull(
            JobStoreTX.class.getClassLoader().getResourceAsStream(TABLES), TABLES)) {
      bench.execute(new String(script.readAllBytes(), StandardCharsets.UTF_8));
    }
  }

  @Override
  public void start(Bench bench, Beats beats, Runs runs) throws SchedulerException {
    HikariDataSource connections = bench.pool(bench.number("threads") + 5);
    DBConnectionManager.getInstance().addConnectionProvider(SOURCE, new Pooled(connections));
    Scheduler created = new StdSchedulerFactory(properties(bench)).getScheduler();
    created.setJobFactory((fired, from) -> new Beat(runs));
    Map<JobDetail, Set<? extends Trigger>> jobs = new HashMap<>();
    for (int timer = 0; timer < beats.timers(); timer++) {
      jobs.put(
          JobBuilder.newJob(Beat.class).withIdentity(Integer.toString(timer)).build(),
          Set.of(trigger(beats, timer)));
    }
    created.scheduleJobs(jobs, false);
    created.start();
    scheduler = created;
    pool = connections;
  }

  private static Properties properties(Bench bench) {
    Properties properties = new Properties();
    properties.setProperty("org.quartz.scheduler.instanceName", "bench");
    properties.setProperty("org.quartz.scheduler.instanceId", "AUTO");
    properties.setProperty(
        "org.quartz.scheduler.batchTriggerAcquisitionMaxCount",
        Integer.toString(bench.number("batch")));
    properties.setProperty("org.quartz.threadPool.class", SimpleThreadPool.class.getName());
    properties.setProperty(
        "org.quartz.threadPool.threadCount", Integer.toString(bench.number("threads")));
    properties.setProperty("org.quartz.jobStore.class", JobStoreTX.class.getName());
    properties.setProperty(
        "org.quartz.jobStore.driverDelegateClass", PostgreSQLDelegate.class.getName());
    properties.setProperty("org.quartz.jobStore.dataSource", SOURCE);
    properties.setProperty("org.quartz.jobStore.isClustered", "true");
    // as its documentation asks for where more than one is taken at a time
    properties.setProperty("org.quartz.jobStore.acquireTriggersWithinLock", "true");
    return properties;
  }

  private static Trigger trigger(Beats beats, int timer) {
    return TriggerBuilder.newTrigger()
        .withIdentity(Integer.toString(timer))
        .startAt(Date.from(beats.next(timer, Instant.now())))
        .withSchedule(
            SimpleScheduleBuilder.simpleSchedule()
                .withIntervalInMilliseconds(beats.interval().toMillis())
                .repeatForever())
        .build();
  }

  @Override
  public void stop() throws SchedulerException {
    if (scheduler != null && pool != null) {
      scheduler.shutdown();
      pool.close();
    }
  }

  /** Jobs are made for each run. */
  private record Beat(Runs runs) implements Job {
    @Override
    public void execute(JobExecutionContext context) {
      runs.begin(
          Integer.parseInt(context.getTrigger().getKey().getName()),
          context.getScheduledFireTime().toInstant());
    }
  }

  /** The connections that all contestants have. */
  private record Pooled(HikariDataSource source) implements ConnectionProvider {
    @Override
    public Connection getConnection() throws SQLException {
      return source.getConnection();
    }

    @Override
    public void shutdown() {
      // who made it closes it
    }

    @Override
    public void initialize() {
      // nothing to do
    }
  }
}
