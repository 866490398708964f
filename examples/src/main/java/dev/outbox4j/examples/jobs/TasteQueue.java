package dev.outbox4j.examples.jobs;

import dev.outbox4j.OutboxSubscriber;
import dev.outbox4j.job.JobQueue;
import dev.outbox4j.job.JobType;
import dev.outbox4j.postgres.PostgresOutbox;
import dev.outbox4j.spi.PayloadCodec;

/** Defines the queue of analyses, the same way in all processes. */
final class TasteQueue {
  static final String NAME = "tastes";

  /**
   * One job for each content of a user. Items are only added, so that no content comes back: one
   * that did within the window of completed jobs would not be analysed again.
   */
  static final JobType<TasteAnalysis> ANALYSIS =
      JobType.of("taste.analyse", TasteAnalysis.class)
          .identifiedBy(TasteAnalysis::key)
          .checking(TasteAnalysis::fault);

  private static final int WORKERS = 4;

  /** Of a process that runs jobs: each worker has one, the queue three, and its looks one. */
  static final int CONNECTIONS = WORKERS + 4;

  private TasteQueue() {}

  /** Of a process that enqueues jobs; whoever runs them adds a handler. */
  static JobQueue.Builder define(PostgresOutbox outbox, PayloadCodec codec, TasteTimes times) {
    return JobQueue.builder(outbox, NAME)
        .codec(codec)
        .backoff(times.backoff())
        .subscriber(
            settings ->
                settings
                    .workers(WORKERS)
                    .lease(times.lease())
                    .poll(OutboxSubscriber.Builder.DEFAULT_MIN_POLL, times.longestPoll()));
  }
}
