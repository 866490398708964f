package dev.outbox4j.benchmarks.peers;

import com.github.kagkarlsson.scheduler.SchedulerBuilder;

/** db-scheduler that claims in batches. */
public final class DbSchedulerLockAndFetch extends DbScheduler {
  /** Made by the service loader. */
  public DbSchedulerLockAndFetch() {}

  @Override
  public String name() {
    return "db-scheduler-lock-and-fetch";
  }

  @Override
  public String contract() {
    return "at least once: claim in batches with heartbeats, fenced by a version, delete one by one";
  }

  @Override
  SchedulerBuilder polling(SchedulerBuilder builder, double lower, double upper) {
    return builder.pollUsingLockAndFetch(lower, upper);
  }
}
