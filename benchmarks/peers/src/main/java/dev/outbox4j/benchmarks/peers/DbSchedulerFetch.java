package dev.outbox4j.benchmarks.peers;

import com.github.kagkarlsson.scheduler.SchedulerBuilder;

/** db-scheduler that picks each task as it runs it: its default way. */
public final class DbSchedulerFetch extends DbScheduler {
  /** Made by the service loader. */
  public DbSchedulerFetch() {}

  @Override
  public String name() {
    return "db-scheduler-fetch";
  }

  @Override
  public String contract() {
    return "at least once: read in batches, pick one by one with heartbeats, fenced, delete one by one";
  }

  @Override
  SchedulerBuilder polling(SchedulerBuilder builder, double lower, double upper) {
    return builder.pollUsingFetch(lower, upper);
  }
}
