package dev.outbox4j.examples.jobs;

import dev.outbox4j.job.JobBackoff;
import java.time.Duration;

/**
 * The times of the queue.
 *
 * @param backoff how long a job waits after a failed attempt
 * @param lease after which time a job may come again whose process has died
 * @param longestPoll how long it may take until somebody looks for it then; less than the lease
 */
record TasteTimes(JobBackoff backoff, Duration lease, Duration longestPoll) {
  /** {@return those of a service} */
  static TasteTimes standard() {
    return new TasteTimes(JobBackoff.standard(), Duration.ofSeconds(30), Duration.ofSeconds(10));
  }

  /** {@return those of a demonstration, which is not to take minutes} */
  static TasteTimes brief() {
    JobBackoff backoff =
        new JobBackoff(Duration.ofMillis(20), Duration.ofMillis(100), Duration.ofMillis(10));
    return new TasteTimes(backoff, Duration.ofSeconds(2), Duration.ofMillis(500));
  }
}
